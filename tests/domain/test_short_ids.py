from ollm.domain.short_ids import shorten_ids


def test_an_id_is_as_long_as_it_takes_to_tell_it_from_the_others() -> None:
    ids = ["00c0ffee-0000-4000-8000-000000000001", "00c0ffee-0000-4000-8000-000000000002", "abcdef01-0000-4000-8000-1"]

    short = shorten_ids(ids)

    assert short[ids[2]] == "abcdef01"
    assert [short[name] for name in ids[:2]] == ids[:2]
    assert all(sum(name.startswith(text) for name in ids) == 1 for text in short.values())
