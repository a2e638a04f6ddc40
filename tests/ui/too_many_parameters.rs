//! A launch passes a tuple of at most 64 arguments.

use exactile::prelude::*;

#[kernel]
#[rustfmt::skip]
fn has_too_many(
    p0: i32, p1: i32, p2: i32, p3: i32, p4: i32, p5: i32, p6: i32, p7: i32, p8: i32, p9: i32, p10: i32, p11: i32, p12: i32, p13: i32, p14: i32, p15: i32,
    p16: i32, p17: i32, p18: i32, p19: i32, p20: i32, p21: i32, p22: i32, p23: i32, p24: i32, p25: i32, p26: i32, p27: i32, p28: i32, p29: i32, p30: i32, p31: i32,
    p32: i32, p33: i32, p34: i32, p35: i32, p36: i32, p37: i32, p38: i32, p39: i32, p40: i32, p41: i32, p42: i32, p43: i32, p44: i32, p45: i32, p46: i32, p47: i32,
    p48: i32, p49: i32, p50: i32, p51: i32, p52: i32, p53: i32, p54: i32, p55: i32, p56: i32, p57: i32, p58: i32, p59: i32, p60: i32, p61: i32, p62: i32, p63: i32,
    p64: i32,
) {}

fn main() {}
