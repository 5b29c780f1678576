from federated_anon.setvalued.generator import power_law


def test_generated_data_resembles_a_click_stream():
    data = power_law(20_000)
    assert len(data) == 20_000
    assert 2.2 < len(data.items) / len(data) < 3.0
    assert data.lengths.min() == 1
    assert data.lengths.max() > 40
    assert 0.04 < data.supports.max() / len(data) < 0.09
    assert all(list(record) == sorted(set(record)) for record in data)


def test_same_seed_same_data():
    assert power_law(500, 40, seed=3) == power_law(500, 40, seed=3)
    assert power_law(500, 40, seed=3) != power_law(500, 40, seed=4)
