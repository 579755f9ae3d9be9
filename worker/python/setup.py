# SPDX-License-Identifier: MIT
"""Makes a wheel of what `make python` has built; run in build/python by that."""
import os

from setuptools import Distribution, find_packages, setup


class Binary(Distribution):
    """The extension is there already."""

    def has_ext_modules(self):
        return True


setup(
    name="troupe",
    version=os.environ["TROUPE_VERSION"],
    description="Workers for the supervisor Troupe, clients, and an executor that a killed process does not break",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(),
    package_data={"troupe": ["*.so", "*.pyi", "py.typed"]},
    distclass=Binary,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    zip_safe=False,
)
