# The Spack recipe of strakes. Use it in a checkout, without any server:
#   spack repo add packaging/spack        (once)
#   spack dev-build -d . strakes@0.1.0
from spack.package import *


class Strakes(PythonPackage):
    """Measures how a parallel file system really behaves, says how to use it well, and proves the advice."""

    homepage = "https://strakes.dev"

    license("Apache-2.0", checked_by="strakes")

    version("0.1.0")

    variant("uring", default=True, description="Transfers and metadata through io_uring")

    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja", type="build")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("liburing@2.1:", type="build", when="+uring")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@1.1:1", type="build")
    depends_on("py-babel@2.12:3", type=("build", "run"))
    depends_on("py-click@8.5:8", type=("build", "run"))
    depends_on("py-jinja2@3.1:3", type=("build", "run"))
    depends_on("py-numpy@1.26:2", type=("build", "run"))
    depends_on("py-prometheus-client@0.20:0", type=("build", "run"))
    depends_on("py-rich@13.7:15", type=("build", "run"))
    depends_on("py-scipy@1.13:1", type=("build", "run"))

    def test_version(self):
        """The installed command prints its version."""
        strakes = which(self.prefix.bin.strakes)
        out = strakes("--version", output=str.split, error=str.split)
        assert "strakes" in out
