"""Small files in many languages, and what is to be seen in them."""

PYTHON = '''import os

LIMIT = 3
lower = 4


@dataclass
class Cart(Base):
    """A cart."""

    items: list[str]

    @property
    def total(
        self,
        tax: float = 0.2,
    ) -> float:
        def inner():
            pass

        return 1.0

    async def pay(self): ...


if os.name == "posix":
    def only_here(): pass
'''
TYPESCRIPT = """/** A shape. */
export interface Shape { area(): number }
export type Id = string | number;
export abstract class Square<T> extends Base implements Shape {
  private side = 2;
  handler = (e: Event) => { return 1 };
  constructor(private a: number) { super() }
  area(): number { return 3 }
}
export const add = (a: number, b: number): number => a + b;
const MAX_SIZE = 3;
const local = 4;
export default function main() {}
namespace N { export function inner() {} }
"""
GO = """package main

// Server serves.
type Server struct {
	addr string
}

type Handler interface {
	Serve(w Writer) error
}

const MaxSize = 3

func (s *Server) Run(ctx context.Context) error {
	return nil
}

func main() {}
"""
RUST = """/// A point.
#[derive(Debug)]
pub struct Point<T> { x: T }

impl<T> Point<T> {
    /// New.
    pub fn new(x: T) -> Self { Point { x } }
}

pub trait Area {
    fn area(&self) -> f64;
}

mod inner { pub fn deep() {} }
pub const MAX: usize = 3;
macro_rules! sq { ($x:expr) => { $x * $x }; }
"""
