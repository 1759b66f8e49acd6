"""Safety 5: which addresses are fetched, decided on the address itself."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.tools.web.address import is_public, parse_url, refuse_private
from tests.covers import covers


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com/",
        "example.com",
        "",
        " ",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com\\@evil.com/",
        "http://exa mple.com/",
        "http://example.com/\r\nHost: evil",
        "http://example.com/\x00",
        "http://example.com/a\tb",
        "http://exam\u200bple.com/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://256.1.1.1/",
        "http://1.2.3.4.5/",
        "http://[::1/",
        "http://[::1%25eth0]/",
        "http://[v1.x]/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:x/",
        "http://%31%32%37.0.0.1/",
        "http://-x-.com:80:80/",
        "http://a..b/",
        "http://" + "a" * 300 + ".com/",
        "http://①②⑦.0.0.1.5/",
    ],
)
def test_what_two_programs_might_read_differently_is_no_url(url: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        parse_url(url)

    assert caught.value.kind == "InvalidUrl"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("https://example.com:443/a?b=c#frag", "https://example.com/a?b=c"),
        ("http://example.com:8080/ä ö".replace(" ", ""), "http://example.com:8080/%C3%A4%C3%B6"),
        ("http://bücher.de/", "http://xn--bcher-kva.de/"),
        ("http://[2001:4860:4860:0::8888]:81/", "http://[2001:4860:4860::8888]:81/"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
        ("HTTP://example.com/%20x", "http://example.com/%20x"),
        (" https://example.com/ ", "https://example.com/"),
    ],
)
def test_a_url_is_taken_apart_and_put_together(url: str, expected: str) -> None:
    assert parse_url(url).url == expected


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1",
        "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_unicast_are_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)  # fmt: skip
def test_public_addresses_are_not(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(number=st.integers(0, 2**32 - 1))
def test_whatever_python_calls_private_is_refused(number: int) -> None:
    address = ipaddress.IPv4Address(number)

    if address.is_private or address.is_multicast or address.is_reserved or address.is_link_local:
        assert not is_public(address)


@covers("T6.8")
def test_one_private_answer_among_public_ones_is_enough() -> None:
    target = parse_url("http://rebind.example/")
    answers = [ipaddress.ip_address("93.184.216.34"), ipaddress.ip_address("127.0.0.1")]

    with pytest.raises(ToolFailure) as caught:
        refuse_private(target, answers, ())

    assert caught.value.kind == "AddressRefused"
    assert "allowPrivate: [rebind.example:80]" in caught.value.message


def test_a_place_opened_by_name_is_that_host_and_port_only() -> None:
    loopback = [ipaddress.ip_address("127.0.0.1")]

    refuse_private(parse_url("http://localhost:8080/x"), loopback, ("LOCALHOST:8080",))
    for url in ("http://localhost:8081/", "http://127.0.0.1:8080/", "http://localhost/"):
        with pytest.raises(ToolFailure):
            refuse_private(parse_url(url), loopback, ("localhost:8080",))


@given(url=st.text(max_size=60) | st.text(max_size=40).map(lambda rest: f"http://{rest}"))
def test_any_text_is_a_url_or_refused_as_one(url: str) -> None:
    try:
        target = parse_url(url)
    except ToolFailure as failure:
        kind = failure.kind
    else:
        kind = "InvalidUrl"
        assert parse_url(target.url) == target
        assert target.url.isascii()
    assert kind == "InvalidUrl"
