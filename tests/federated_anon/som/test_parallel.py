import threading

from threadpoolctl import threadpool_info

from federated_anon.som.parallel import map_chunks, single_blas_thread, slices


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_keeps_to_one_thread_whoever_asks_and_is_free_again_after():
    before, seen = blas_threads(), []

    def look() -> None:
        with single_blas_thread():
            seen.append(blas_threads())

    look()
    for _ in range(2):
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert seen == [{1}] * 3
    assert blas_threads() == before


def test_results_come_in_the_order_of_the_items():
    assert map_chunks(lambda part: part.stop - part.start, slices(10, 4)) == [4, 4, 2]
