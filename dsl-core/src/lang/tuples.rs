//! The sizes of tuples that the language takes.

/// Calls a macro with each tuple of one item up to eight or twelve, or of two up to four: names of types, each with
/// its position.
macro_rules! for_each_tuple {
    ($callback:ident, two up to four) => {
        for_each_tuple!(@longer $callback [A 0] B 1 C 2 D 3);
    };
    ($callback:ident, up to eight) => {
        for_each_tuple!(@longer $callback [] A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
    };
    ($callback:ident, up to twelve) => {
        for_each_tuple!(@longer $callback [] A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11);
    };
    (@longer $callback:ident [$($item:tt)*]) => {};
    (@longer $callback:ident [$($item:tt)*] $Next:ident $index:tt $($rest:tt)*) => {
        $callback!($($item)* $Next $index);
        for_each_tuple!(@longer $callback [$($item)* $Next $index] $($rest)*);
    };
}

pub(super) use for_each_tuple;
