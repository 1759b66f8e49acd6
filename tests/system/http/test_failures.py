"""What can go wrong in an exchange, told apart by whether a request may be repeated."""

import pytest

from ollm.system.http import failures


@pytest.mark.parametrize(
    ("failure", "started"),
    [
        (failures.HttpFailure("x"), False),
        (failures.ConnectFailed("x"), False),
        (failures.CertificateNotTrusted("x"), False),
        (failures.FirstByteTimeout("x"), False),
        (failures.StreamStalled("x"), True),
        (failures.ConnectionBroken("x", started=True), True),
        (failures.ConnectionBroken("x", started=False), False),
        (failures.BadResponse("x"), True),
        (failures.TooLarge("x"), True),
    ],
)
def test_whether_any_byte_of_an_answer_had_come(failure: failures.HttpFailure, started: bool) -> None:
    assert failure.started is started
    assert str(failure) == "x"
    assert isinstance(failure, failures.HttpFailure)


def test_a_certificate_that_is_not_trusted_means_no_connection() -> None:
    assert issubclass(failures.CertificateNotTrusted, failures.ConnectFailed)
