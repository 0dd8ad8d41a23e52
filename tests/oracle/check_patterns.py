"""Patterns in many spellings, each a small model of its own: what ops.json says of them must not depend on the spelling."""

import oracle
import pattern_attention
import pattern_false
import pattern_formulas
import pattern_layouts
import pattern_masks


def main():
    tally = oracle.Tally()
    pattern_attention.check(tally)
    pattern_layouts.check(tally)
    pattern_masks.check(tally)
    pattern_formulas.check(tally)
    pattern_false.check(tally)
    tally.end()


main()
