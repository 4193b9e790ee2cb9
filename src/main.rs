//! The program: hands the arguments to the command line and exits with its code.
fn main() {}
