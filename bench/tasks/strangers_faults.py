"""The small programs with a fault in them that the strangers' tasks start from."""

from __future__ import annotations

CLAMP = {
    "clamp.py": '''\
def clamp(value, low, high):
    """Keep value between low and high."""
    return min(low, max(value, high))
''',
    "test_clamp.py": """\
from clamp import clamp


def test_inside():
    assert clamp(5, 0, 10) == 5


def test_below():
    assert clamp(-3, 0, 10) == 0


def test_above():
    assert clamp(30, 0, 10) == 10
""",
}
INITIALS = {
    "names.py": """\
def full_name(first, last):
    return first + " " + last


def initials(name):
    return "".join(part[0] for part in name.split())
""",
    "test_names.py": """\
from names import full_name, initials


def test_full_name():
    assert full_name("Ada", "Lovelace") == "Ada Lovelace"


def test_initials():
    assert initials("Ada Lovelace") == "AL"


def test_initials_of_small_letters():
    assert initials("grace hopper") == "GH"
""",
}
LEAP = {
    "leap.py": """\
def is_leap(year):
    return year % 4 == 0 and year % 100 != 0
""",
    "test_leap.py": """\
from leap import is_leap


def test_usual():
    assert is_leap(2024)
    assert not is_leap(2023)


def test_centuries():
    assert not is_leap(1900)
    assert is_leap(2000)
""",
}
BASKET = {
    "basket.py": """\
class Basket:
    def __init__(self):
        self.lines = []

    def add(self, name, price, quantity=1):
        self.lines.append((name, price, quantity))

    def total(self):
        return sum(price for _, price, quantity in self.lines)
""",
    "test_basket.py": """\
from basket import Basket


def test_empty():
    assert Basket().total() == 0


def test_total_counts_every_piece():
    basket = Basket()
    basket.add("pen", 2, 3)
    basket.add("ink", 7)
    assert basket.total() == 13
""",
}
GRADES = {
    "grades.py": """\
def average(marks):
    return sum(marks) / len(marks)


def best(marks):
    return max(marks)
""",
    "main.py": "from grades import average\n\nprint(average([1, 2, 3]))\n",
}
COUNTDOWN = {
    "countdown.py": """\
def countdown(start):
    return list(range(start, 0, -1))


if __name__ == "__main__":
    for number in countdown(5):
        print(number)
""",
    "README.md": "# Countdown\n\nFor the rocket club.\n",
}
DISCOUNT = {
    "prices.py": """\
def discounted(price, percent):
    return price - percent


def with_tip(price, percent):
    return price + price * percent / 100
""",
    "main.py": "from prices import discounted\n\nprint(discounted(100, 10))\n",
}
PALINDROME = {
    "words.py": """\
def is_palindrome(word):
    return word == word[::-1]


def vowels(word):
    return sum(letter in "aeiou" for letter in word.lower())
""",
}
ORDER = {
    "order.py": """\
SHIPPING = 5


def order_total(prices):
    total = sum(prices) + SHIPPING
    return total + SHIPPING


if __name__ == "__main__":
    print("To pay:", order_total([12, 30, 8]))
""",
}
