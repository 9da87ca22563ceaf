# The front door. Building is CMake's business (CMakePresets.json); this file only knows the way.
#
#   make          build build/shoal            make check   run the tests
#   make run      serve the home cluster       make asan    the tests under AddressSanitizer and UBSan
#   make demo     five requests, answered      make tsan    the tests under ThreadSanitizer
#   make bench    measure, into bench/runs/   make sanitizers   both in one run, what they see twice once
#   make bench-cores-archive   pack what measures another machine's cores (bench/cores), into build/shoal-cores.tar.gz
#   make long     tests that take minutes, and clients of npm and PyPI
#   make fuzz     fuzz every parser (SECONDS_EACH=60)
#   make fail     let every allocation and write fail once (short form in make long)
#   make neon     the AArch64 kernels under qemu (in make long, too)
#   make install  to PREFIX (/usr/local)       make deb     Debian's packages, in build/deb
#   make image    a container's image          make html     the documentation as pages, in build/html
#   make dist     the source archive, Debian's packages for amd64 and arm64, SHA256SUMS, in build/dist
#   make clean, make help

PORT ?= 8080
PREFIX ?= /usr/local
SECONDS_EACH ?= 60
JOBS ?= $(shell nproc)

.PHONY: all setup run demo check long asan tsan sanitizers fuzz fail neon bench bench-cores-archive install deb deb-check dist image html clean help

all: setup
	@scripts/configure.sh release
	@cmake --build build -j $(JOBS) --target shoal libshoal libshoal_shared

setup:
	@scripts/setup.sh

run: all
	@exec build/shoal serve -c shoal.yaml --port $(PORT) --banner

demo: all
	@scripts/demo.sh

check:
	@scripts/setup.sh --test
	@scripts/setup.sh --clients || echo "check: goes on without Node.js or Chromium"
	@tests/run.sh release

long:
	@scripts/setup.sh --test
	@scripts/setup.sh --clients || echo "long: goes on without Node.js or Chromium"
	@scripts/setup.sh --cross || echo "long: goes on without the tools for AArch64"
	@tests/run.sh long

asan:
	@scripts/setup.sh --test
	@tests/run.sh asan

tsan:
	@scripts/setup.sh --test
	@tests/run.sh tsan

sanitizers:
	@scripts/setup.sh --test
	@tests/run.sh sanitizers

fuzz:
	@scripts/setup.sh --test
	@scripts/fuzz.sh $(SECONDS_EACH)

fail: all
	@cmake --build build -j $(JOBS)
	@tests/fail/sweeps.sh whole

neon: all
	@scripts/neon.sh

bench: all
	@scripts/bench.sh

bench-cores-archive: all
	@bench/cores --pack build/shoal-cores.tar.gz build/shoal

install: all
	@cmake --install build --prefix $(PREFIX)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

deb:
	@scripts/deb.sh

deb-check: deb
	@scripts/deb_check.sh

dist:
	@scripts/dist.sh

image: all
	@scripts/image.sh

html:
	@scripts/html.sh

clean:
	@rm -rf build

help:
	@sed -n 's/^#   //p' Makefile
