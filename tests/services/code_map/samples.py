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
OUTLINES = {
    ("cart.py", PYTHON): """\
    3 LIMIT = 3
    8 class Cart(Base)
   14   def total(self, tax: float = 0.2) -> float
   23   async def pay(self)
   27 def only_here()""",
    ("shape.ts", TYPESCRIPT): """\
    2 interface Shape
    2   area(): number
    3 type Id = string | number
    4 abstract class Square<T> extends Base implements Shape
    6   handler = (e: Event)
    7   constructor(private a: number)
    8   area(): number
   10 const add = (a: number, b: number): number
   11 const MAX_SIZE = 3
   13 function main()
   14 namespace N
   14   function inner()""",
    ("server.go", GO): """\
    4 type Server struct
    8 type Handler interface
    9   Serve(w Writer) error
   12 const MaxSize = 3
   14   func (s *Server) Run(ctx context.Context) error
   18 func main()""",
    ("point.rs", RUST): """\
    3 pub struct Point<T>
    5 impl<T> Point<T>
    7   pub fn new(x: T) -> Self
   10 pub trait Area
   11   fn area(&self) -> f64
   14 mod inner
   14   pub fn deep()
   15 pub const MAX: usize = 3
   16 macro_rules! sq""",
    (
        "Foo.java",
        "@Deprecated\npublic class Foo<T> {\n  public Foo(int a) {}\n  @Override\n  List<T> run() { return x; }\n}\n",
    ): """\
    2 public class Foo<T>
    3   public Foo(int a)
    5   List<T> run()""",
    (
        "a.c",
        "#define MAX 3\ntypedef struct node { int v; } node_t;\nstatic int *find(int n) { return 0; }\nint v = 3;\n",
    ): """\
    1 #define MAX 3
    2 typedef struct node node_t
    3 static int *find(int n)""",
    (
        "a.hpp",
        "namespace ns {\nclass Box {\n  int get() const { return 1; }\n  int v;\n};\n}\nint ns::Box::late(int x) { return x; }\n",
    ): """\
    1 namespace ns
    2   class Box
    3     int get() const
    7     int ns::Box::late(int x)""",
    (
        "cart.rb",
        "module Shop\n  class Cart < Base\n    def pay(a)\n      a\n    end\n    def self.build\n    end\n  end\nend\n",
    ): """\
    1 module Shop
    2   class Cart < Base
    3     def pay(a)
    6     def self.build""",
    ("run.sh", "X=3\ndeploy() {\n  echo\n}\nfunction clean { rm x; }\n"): """\
    2 deploy()
    5 function clean""",
}
