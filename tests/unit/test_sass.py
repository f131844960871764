"""Facts that are read from a disassembly."""

from dataclasses import asdict

from autotune.compilers.sass import parse_disassembly, without_unrolling

TEXT = """\
//--------------------- .text.work              --------------------------
	.section	.text.work,"ax",@progbits
work:
.text.work:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R2, SR_TID.X ;
.L_x_0:
        /*0020*/                   LDG.E.128 R4, desc[UR6][R4.64] ;
        /*0030*/                   FFMA R8, R4, R5, R6 ;
        /*0040*/              @!P0 STS [R5], R8 ;
        /*0050*/                   MUFU.RCP R9, R8 ;
        /*0060*/               @P0 BRA `(.L_x_0) ;
        /*0070*/                   STL [R1], R9 ;
        /*0080*/                   RED.E.ADD.STRONG.GPU desc[UR4][R4.64], R3 ;
        /*0090*/                   EXIT ;
.L_x_1:
        /*00a0*/                   BRA `(.L_x_1);
        /*00b0*/                   NOP;
//--------------------- .nv.shared.work          --------------------------
"""


def test_facts_become_json_values():
    code = asdict(parse_disassembly(TEXT)["work"])
    assert code["kinds"]["atomic"] == 1


def test_kinds_widths_and_the_inner_loop():
    code = parse_disassembly(TEXT)["work"]
    assert code.instructions == 11
    assert code.kinds["local store"] == code.kinds["atomic"] == 1
    assert code.loop_kinds == {
        "global load": 1,
        "float32": 1,
        "shared store": 1,
        "special": 1,
        "branch": 1,
    }
    assert code.access_bits == {("global load", 128): 1, ("shared store", 32): 1}


def test_every_way_to_ask_for_unrolling_is_taken_back():
    source = '#pragma unroll\n#pragma unroll (N)\n_Pragma("unroll 4") for\n#define U(n) PRAGMA(unroll n)\n'
    rolled = '#pragma unroll 1\n#pragma unroll 1\n_Pragma("unroll 1") for\n#define U(n) PRAGMA(unroll 1)\n'
    assert without_unrolling(source) == rolled
    assert without_unrolling(rolled) == rolled
