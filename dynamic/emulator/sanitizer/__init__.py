"""Watches what a run does to memory: who orders whom, and who gets in whose way.

`choice` says what a run is watched for. `clocks` knows what each warp has seen of the others,
`shadow` who touched each byte last, `races` puts the two together.
"""
