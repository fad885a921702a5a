"""Watches what a run does to memory: who orders whom, and who gets in whose way.

`choice` says what a run is watched for, `watching` sets the watch. `clocks` knows what each warp
has seen of the others, `shadow` who touched each byte last, `races` puts the two together;
`between` is what CTAs hand to each other. `agents` are those who work beside the warps, `arrivals`
is what they do to shared memory, `in_flight` to registers. `not_finite` knows bits of NaN and
infinities, `makers` who made them of finite numbers, `nonfinite` follows these.
"""
