"""What was known of kernels at some time, in a file, and what has got worse since.

`entries` is the data, `layout` the file, `measures` and `observed` what a run says of its kernels,
`held` which findings are known, `worse` which properties and numbers of a kernel are not what they
were, `outcome` all of it together.
"""
