# SPDX-License-Identifier: MIT
# One non-recursive Makefile; it calls itself again only for builds of another kind (sanitizers) and
# after it has installed what was missing. `make help` lists what there is.

VERSION := 2.0.0
SONAME := libtroupe.so.2

BUILD ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
# For another processor, besides CC, LD and AR: OBJCOPY and PKG_CONFIG.
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
JOBS ?= $(shell nproc)
PREFIX ?= /usr
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec/troupe
MULTIARCH ?= $(shell $(CC) -print-multiarch 2>/dev/null)
LIBDIR ?= $(PREFIX)/lib$(if $(MULTIARCH),/$(MULTIARCH))
INCLUDEDIR ?= $(PREFIX)/include
PYTHONDIR ?= $(PREFIX)/lib/python3/dist-packages
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/troupe
# Where systemd looks, whatever the multiarch directory is.
SYSTEMDDIR ?= $(PREFIX)/lib

# V=1 shows commands; W=error or CI=true makes warnings errors; SAN=address,undefined instruments.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')
SAN ?=

# ---- flags ----------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wvla -Wstrict-prototypes \
	-Wformat=2 -Wno-unused-parameter $(if $(filter error,$(W))$(filter true 1,$(CI)),-Werror)
HARDENING := -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
ifneq ($(SAN),)
HARDENING := -fsanitize=$(SAN) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
CFLAGS ?= -O2 -g
# One set of objects for programs and library: -fno-semantic-interposition takes the price off -fPIC.
FLAGS = -std=gnu17 -I. -D_GNU_SOURCE -DTROUPE_VERSION='"$(VERSION)"' \
	-DTROUPE_LIBEXECDIR='"$(LIBEXECDIR)"' -fPIC -fno-semantic-interposition \
	-pthread -MMD -MP $(WARNINGS) $(HARDENING) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(CFLAGS) -pthread $(if $(SAN),-fsanitize=$(SAN)) -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)

# Asked for when the first recipe needs them: a machine that lacks pkg-config can still `make deps`.
pkg = $(shell $(PKG_CONFIG) --libs $(1))
URING_LIBS = $(eval URING_LIBS := $$(call pkg,liburing))$(URING_LIBS)
SUPERVISOR_LIBS = $(eval SUPERVISOR_LIBS := $$(call pkg,liburing libsystemd libseccomp sqlite3 nettle))$(SUPERVISOR_LIBS)
WEB_LIBS = $(eval WEB_LIBS := $$(call pkg,libsystemd jansson libmicrohttpd))$(WEB_LIBS)
CTL_LIBS = $(eval CTL_LIBS := $$(call pkg,jansson libseccomp sqlite3))$(CTL_LIBS)
CHECK_LIBS = $(eval CHECK_LIBS := $$(call pkg,check))$(CHECK_LIBS)
# From its archive: a worker that is restarted often starts faster.
SQLITE_LIBS = $(eval SQLITE_LIBS := -Wl,-Bstatic $$(call pkg,sqlite3) -Wl,-Bdynamic -lm)$(SQLITE_LIBS)
SYSTEMD_LIBS = $(eval SYSTEMD_LIBS := $$(call pkg,libsystemd))$(SYSTEMD_LIBS)
NETTLE_LIBS = $(eval NETTLE_LIBS := $$(call pkg,nettle))$(NETTLE_LIBS)
TRACE_LIBS = $(eval TRACE_LIBS := $$(call pkg,libdw libelf))$(TRACE_LIBS)
OTLP_LIBS = $(eval OTLP_LIBS := $$(call pkg,libcurl jansson))$(OTLP_LIBS)
NATS_LIBS = $(eval NATS_LIBS := $$(call pkg,libnats jansson))$(NATS_LIBS)
JANSSON_LIBS = $(eval JANSSON_LIBS := $$(call pkg,jansson))$(JANSSON_LIBS)

# ---- sources --------------------------------------------------------------------------------------

below = $(sort $(shell find $(1) -name '$(2)'))
SHARED := $(call below,shared,*.c)
KEEPER := $(filter-out %/main.c,$(call below,supervisor/keeper,*.c))
SUPERVISOR := $(filter-out %/main.c supervisor/caller/% supervisor/ctl/% supervisor/web/% supervisor/trace/% supervisor/otlp/%,$(call below,supervisor,*.c))
CALLER := $(call below,supervisor/caller,*.c)
CTL := $(filter-out %/main.c,$(call below,supervisor/ctl,*.c))
WEB := $(filter-out %/main.c,$(call below,supervisor/web,*.c))
# Needs libdw (libdw-dev): without it, troupe-trace is left out, and reports of deaths carry no stacks.
TRACE := $(if $(wildcard /usr/include/elfutils/libdwfl.h),$(wildcard supervisor/trace/*.c))
# Needs libcurl (libcurl4-openssl-dev): without it, troupe-otlp is left out.
OTLP := $(if $(wildcard /usr/include/curl/curl.h /usr/include/*/curl/curl.h),$(wildcard supervisor/otlp/*.c))
WORKER := $(filter-out worker/exec/% worker/examples/% worker/nats/% worker/python/%,$(call below,worker,*.c))
# The extension for Python keeps to the stable ABI, so any headers will do; without them it is left out.
PYTHON_INCLUDE ?= $(patsubst %/Python.h,%,$(lastword $(sort $(wildcard /usr/include/python3*/Python.h))))
# Needs libnats (libnats-dev): left out where that is missing.
NATS := $(if $(wildcard /usr/include/nats/nats.h),$(wildcard worker/nats/*.c))
# Which has Debian's setuptools and wheel.
DEBIAN_PYTHON ?= /usr/bin/python3
PYTHON_VERSION = $(shell $(DEBIAN_PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
PYTHON_MODULE := $(if $(PYTHON_INCLUDE),$(wildcard worker/python/module/*.c))
PYTHON_FILES := $(shell find worker/python/troupe -name '*.py' -o -name '*.pyi' -o -name py.typed)
EXEC := $(filter-out worker/exec/troupe-exec.c,$(wildcard worker/exec/*.c))
UNIT_TESTS := $(filter-out $(if $(NATS),,tests/unit/nats/%),$(call below,tests/unit,test-*.c))
UNIT_HELPERS := $(filter-out $(call below,tests/unit,test-*.c),$(call below,tests/unit,*.c))
STRESS_TESTS := $(wildcard tests/stress/stress-*.c)
STRESS_HELPERS := $(filter-out $(STRESS_TESTS),$(wildcard tests/stress/*.c)) tests/unit/suite.c
E2E_PROGRAMS := $(wildcard tests/e2e/*.c)
E2E_WORKERS := $(wildcard tests/e2e/workers/*.c)
BENCH_HELPERS := $(wildcard tests/bench/load/*.c)
# Needs a library of its own: left out where that is missing.
BENCH_ZEROMQ := $(if $(wildcard /usr/include/zmq.h),,tests/bench/peers/zeromq.c)
BENCH_NATS := $(if $(NATS),,tests/bench/peers/stream.c)
BENCHES := $(filter-out $(BENCH_HELPERS) $(BENCH_ZEROMQ) $(BENCH_NATS),$(wildcard tests/bench/*/*.c))
FUZZERS := $(wildcard tests/fuzz/fuzz-*.c)
# An example is a file, or a directory of files.
EXAMPLES := $(basename $(notdir $(wildcard worker/examples/*.c))) \
	$(notdir $(patsubst %/,%,$(sort $(dir $(wildcard worker/examples/*/*.c)))))

MANUALS := $(filter-out $(if $(NATS),,worker/nats/%) $(if $(OTLP),,supervisor/otlp/%),$(call below,supervisor worker,*.[1-8]))
INTERFACES := $(wildcard supervisor/control/*.varlink)
OURS := $(call below,shared supervisor worker tests,*.[ch])
PRODUCT := $(filter-out tests/% $(if $(PYTHON_INCLUDE),,worker/python/%) $(if $(NATS),,worker/nats/%) $(if $(TRACE),,supervisor/trace/%) $(if $(OTLP),,supervisor/otlp/%),$(filter %.c,$(OURS)))
SCRIPTS := $(shell grep -lE '^\#!.*(/| )(ba|da)?sh' .ci/* units/* units/debian/* units/debian/tests/* tests/*/* worker/examples/* 2>/dev/null)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
fault_object = $(patsubst %.c,$(BUILD)/faults/obj/%.o,$(1))
program = $(patsubst %.c,$(BUILD)/%,$(1))

PROGRAMS := $(BUILD)/trouped $(BUILD)/trouped-supervisor $(BUILD)/troupectl $(BUILD)/troupe-web $(BUILD)/troupe-exec \
	$(if $(NATS),$(BUILD)/troupe-nats) $(if $(TRACE),$(BUILD)/troupe-trace) $(if $(OTLP),$(BUILD)/troupe-otlp)
LIBRARIES := $(BUILD)/$(SONAME) $(BUILD)/libtroupe.so $(BUILD)/libtroupe.a
EXAMPLE_PROGRAMS := $(EXAMPLES:%=$(BUILD)/examples/%)
E2E_PRELOADS := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/e2e/preload/*.c))
E2E_HELPERS := $(call program,$(E2E_PROGRAMS) $(E2E_WORKERS)) $(E2E_PRELOADS)

.PHONY: all run python check check-python check-binding check-programs check-unit check-stress check-e2e check-docs check-web check-nats check-monitoring check-clients check-layers check-chaos check-upgrades check-asan check-tsan \
	check-model check-world check-world-mutants check-world-builds check-valgrind check-systemd check-powercut check-vm check-packages check-image fuzz lint fmt site install install-files uninstall deb deb-deps bench bench-quick bench-deps bench-instructions help deps clean \
	deps-present FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS) $(LIBRARIES) $(EXAMPLE_PROGRAMS)

# ---- compile --------------------------------------------------------------------------------------

# Changes when the compiler or its flags do, and everything is built anew then.
STAMP := $(BUILD)/flags
$(STAMP): FORCE | deps-present
	@mkdir -p $(BUILD)
	@printf '%s\n' "$$STAMP_TEXT" | cmp -s - $@ || printf '%s\n' "$$STAMP_TEXT" > $@
$(STAMP): export STAMP_TEXT = $(CC) $(FLAGS) $(LDFLAGS)

# -MT: ccache with a base directory would name the object by another path, and headers count for nothing.
$(BUILD)/obj/%.o: %.c $(STAMP)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) $(VISIBILITY) -MT $@ -c -o $@ $<

# libtroupe exports what is marked _public_ and listed in its version script, nothing else.
$(call object,$(WORKER)): VISIBILITY = -fvisibility=hidden
PYTHON_FLAGS := -isystem $(PYTHON_INCLUDE) -DPy_LIMITED_API=0x030B0000
$(call object,$(PYTHON_MODULE)): VISIBILITY = -fvisibility=hidden $(PYTHON_FLAGS)

# The same code with fault points: "fail the Nth call", "die at the Nth step".
$(BUILD)/faults/obj/%.o: %.c $(STAMP)
	$(call say,CC,$< (faults))
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -DTROUPE_FAULTS -MT $@ -c -o $@ $<

# Interface descriptions are part of the program (.incbin), which -MMD does not see.
INCBIN := $(shell grep -ls incbin $(SUPERVISOR))
$(call object,$(INCBIN)) $(call fault_object,$(INCBIN)): $(INTERFACES)

# So is the page.
$(call object,supervisor/web/answer.c): $(wildcard supervisor/web/page/*)

# Convenience archives: a link takes from them what it needs.
define archive
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcsD $@ $^
endef
$(BUILD)/libshared.a: $(call object,$(SHARED)); $(archive)
$(BUILD)/libsupervisor.a: $(call object,$(SUPERVISOR)); $(archive)
$(BUILD)/libcaller.a: $(call object,$(CALLER)); $(archive)
$(BUILD)/libctl.a: $(call object,$(CTL)); $(archive)
$(BUILD)/libweb.a: $(call object,$(WEB)); $(archive)
$(BUILD)/libworker.a: $(call object,$(WORKER)); $(archive)
$(BUILD)/libexec.a: $(call object,$(EXEC)); $(archive)
$(BUILD)/libhelpers.a: $(call object,$(UNIT_HELPERS)); $(archive)
$(BUILD)/libload.a: $(call object,$(BENCH_HELPERS)); $(archive)
$(BUILD)/faults/libshared.a: $(call fault_object,$(SHARED)); $(archive)
$(BUILD)/faults/libsupervisor.a: $(call fault_object,$(SUPERVISOR)); $(archive)
$(BUILD)/faults/libworker.a: $(call fault_object,$(WORKER)); $(archive)
$(BUILD)/faults/libhelpers.a: $(call fault_object,$(STRESS_HELPERS)); $(archive)

# A sanitizer's run time is linked dynamically.
STATIC := $(if $(SAN),,-static)

# ---- link -----------------------------------------------------------------------------------------

define link
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
endef
$(BUILD)/trouped-supervisor: $(BUILD)/obj/supervisor/main.o $(BUILD)/libsupervisor.a $(BUILD)/libshared.a
	$(link) $(SUPERVISOR_LIBS)

# Every worker begins as a copy of it, and a small static program is copied fast.
$(BUILD)/trouped: $(BUILD)/obj/supervisor/keeper/main.o $(call object,$(KEEPER)) $(BUILD)/libshared.a \
		| $(BUILD)/trouped-supervisor
	$(link) $(STATIC)

$(BUILD)/faults/trouped-supervisor: $(BUILD)/faults/obj/supervisor/main.o $(BUILD)/faults/libsupervisor.a \
		$(BUILD)/faults/libshared.a
	$(link) $(SUPERVISOR_LIBS)

$(BUILD)/faults/trouped: $(BUILD)/faults/obj/supervisor/keeper/main.o $(call fault_object,$(KEEPER)) \
		$(BUILD)/faults/libshared.a $(BUILD)/faults/trouped-supervisor
	$(link) $(STATIC)

# With a store that promises too early: its object comes before the one in the archive.
$(BUILD)/tests/powercut/mutant/trouped-supervisor: $(BUILD)/obj/supervisor/main.o $(BUILD)/obj/tests/powercut/mutant.o \
		$(BUILD)/libsupervisor.a $(BUILD)/libshared.a
	$(link) $(SUPERVISOR_LIBS)

$(BUILD)/tests/powercut/mutant/trouped: $(BUILD)/trouped $(BUILD)/tests/powercut/mutant/trouped-supervisor
	$(Q)cp $< $@

# Takes libtroupe as everybody has it, with nothing but its interface; of the daemon, configuration only.
$(BUILD)/troupectl: $(BUILD)/obj/supervisor/ctl/main.o $(BUILD)/libctl.a $(BUILD)/libcaller.a \
		$(BUILD)/libsupervisor.a $(BUILD)/libtroupe.a $(BUILD)/libshared.a
	$(link) $(CTL_LIBS)

$(BUILD)/troupe-web: $(BUILD)/obj/supervisor/web/main.o $(BUILD)/libweb.a $(BUILD)/libcaller.a \
		$(BUILD)/libsupervisor.a $(BUILD)/libshared.a
	$(link) $(WEB_LIBS)

$(BUILD)/troupe-exec: $(BUILD)/obj/worker/exec/troupe-exec.o $(BUILD)/libexec.a $(BUILD)/libtroupe.a \
		$(BUILD)/libshared.a
	$(link)

$(BUILD)/troupe-trace: $(call object,$(TRACE)) $(BUILD)/libshared.a
	$(link) $(TRACE_LIBS)

$(BUILD)/troupe-otlp: $(call object,$(OTLP)) $(BUILD)/libcaller.a $(BUILD)/libshared.a
	$(link) $(OTLP_LIBS)

$(BUILD)/troupe-nats: $(call object,$(NATS)) $(BUILD)/libtroupe.a $(BUILD)/libshared.a
	$(link) $(NATS_LIBS)

$(BUILD)/$(SONAME): $(call object,$(WORKER)) $(BUILD)/libshared.a worker/libtroupe.map
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=worker/libtroupe.map \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(filter %.a,$^)

$(BUILD)/libtroupe.so: $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

# One object in which only the interface is left global: it cannot clash with a program's own names.
$(BUILD)/libtroupe.a: $(call object,$(WORKER)) $(BUILD)/libshared.a
	$(call say,AR,$@)
	$(Q)$(LD) -r -o $(BUILD)/libtroupe.o $(filter %.o,$^) $(filter %.a,$^)
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='troupe_*' $(BUILD)/libtroupe.o
	$(Q)rm -f $@ && $(AR) rcsD $@ $(BUILD)/libtroupe.o

# As a package that PYTHONPATH=$(BUILD)/python finds. It brings libtroupe along, and takes Python from the program.
$(BUILD)/python/troupe/_troupe.abi3.so: $(call object,$(PYTHON_MODULE)) $(BUILD)/libtroupe.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -shared -Wl,--exclude-libs,ALL -o $@ $^ -lm

# The same for a debug build of Python, which counts all references: in what is inlined as well.
$(BUILD)/tests/python/_troupe.abi3.so: $(PYTHON_MODULE) $(wildcard worker/python/module/*.h) $(BUILD)/libtroupe.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -MMD -MP,$(FLAGS)) -fvisibility=hidden $(PYTHON_FLAGS) -DPy_REF_DEBUG -shared \
		-Wl,--exclude-libs,ALL -o $@ $(filter %.c %.a,$^) -lm

$(BUILD)/python/troupe/%: worker/python/troupe/%
	$(Q)install -D -m 644 $< $@

# Workers that are restarted often start fast when nothing has to be linked at run time.
LIBS_digest = $(NETTLE_LIBS)
LIBS_provision = $(JANSSON_LIBS)
LIBS_bank = $(SQLITE_LIBS)
LIBS_sd-event = $(SYSTEMD_LIBS)
# SQLite may load extensions, for which a static program is not made.
DYNAMIC_EXAMPLES := bank sd-event
define example
$$(BUILD)/examples/$(1): $$(call object,$$(wildcard worker/examples/$(1).c worker/examples/$(1)/*.c)) \
		$$(BUILD)/libtroupe.a
	$$(link) $$(if $$(filter $(1),$$(DYNAMIC_EXAMPLES)),,$$(STATIC)) $$(LIBS_$(1))
endef
$(foreach name,$(EXAMPLES),$(eval $(call example,$(name))))

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libhelpers.a $(BUILD)/libctl.a $(BUILD)/libcaller.a \
		$(BUILD)/libexec.a $(BUILD)/libweb.a $(BUILD)/libsupervisor.a $(BUILD)/libworker.a $(BUILD)/libshared.a
	$(link) $(SUPERVISOR_LIBS) $(JANSSON_LIBS) $(CHECK_LIBS) $(WRAPPED)
# Lets an allocation of the library fail.
$(BUILD)/tests/unit/message/test-actor: WRAPPED := -Wl,--wrap=malloc
# Its simulation draws times.
$(BUILD)/tests/unit/pool/test-elastic: WRAPPED := -lm
# Lets the disk be full.
$(BUILD)/tests/unit/store/test-store-failure: WRAPPED := -Wl,--wrap=posix_fallocate -Wl,--wrap=pwrite
# Lets tests of calls slow the clock down.
$(BUILD)/tests/unit/control/%: WRAPPED := -Wl,--wrap=clock_now

# What an example does by itself can be tested like a module of ours.
$(BUILD)/tests/unit/examples/test-decimal: $(call object,worker/examples/bank/decimal.c)
$(BUILD)/tests/unit/examples/test-ledger: $(call object,$(addprefix worker/examples/bank/,ledger.c database.c decimal.c))
$(BUILD)/tests/unit/examples/test-ledger: SUPERVISOR_LIBS = $(SQLITE_LIBS)

# In the place of what they call, these tests have functions of their own.
$(BUILD)/tests/unit/nats/test-consumer-pull: $(call object,worker/nats/consumer-pull.c worker/nats/consumer.c)
$(BUILD)/tests/unit/nats/test-consumer-pull: SUPERVISOR_LIBS = $(NATS_LIBS)
$(BUILD)/tests/unit/nats/test-publication: $(call object,worker/nats/publication.c)
$(BUILD)/tests/unit/nats/test-publication: SUPERVISOR_LIBS = $(NATS_LIBS)
$(BUILD)/tests/unit/nats/test-publish: $(call object,worker/nats/publisher.c worker/nats/flight.c)
$(BUILD)/tests/unit/nats/test-transport: $(call object,worker/nats/transport.c)
$(BUILD)/tests/unit/nats/test-engine: $(call object,$(filter-out %/main.c,$(NATS)))
$(BUILD)/tests/unit/nats/test-engine: SUPERVISOR_LIBS = $(NATS_LIBS)

$(BUILD)/tests/stress/%: $(BUILD)/faults/obj/tests/stress/%.o $(BUILD)/faults/libhelpers.a \
		$(BUILD)/faults/libsupervisor.a $(BUILD)/faults/libworker.a $(BUILD)/faults/libshared.a
	$(link) $(SUPERVISOR_LIBS) $(CHECK_LIBS)

# As libtroupe.a, but for a program that brings libshared.a.
$(BUILD)/faults/libtroupe.o: $(call fault_object,$(WORKER))
	$(call say,LD,$@)
	$(Q)$(LD) -r -o $@ $^ && $(OBJCOPY) --wildcard --keep-global-symbol='troupe_*' $@

# The linker gives the world what the product would block in.
comma := ,
WORLD_WRAPS := clock_gettime recvmsg send sched_yield poll ppoll epoll_pwait2 syscall getrandom \
	pthread_create pthread_join pthread_mutex_lock pthread_cond_wait pthread_cond_timedwait \
	pthread_cond_signal \
	fault_inject posix_fallocate open fopen \
	spawn spawn_find_ended spawn_reap spawn_is_child supervisor_process_init supervisor_process_start keeper_supervisor_ready keeper_expect_orphans \
	crashes_add signalfd timerfd_create hash_secret getenv
# Instead of these, it gets other functions: helpers of the supervisor are processes or threads of their own.
WORLD_OTHERS := closer_start=sim_nothing taker_start=sim_nothing malloc_trim=sim_nothing prctl=sim_nothing timerfd_settime=sim_nothing \
	names_start=names_look_up names_wait=names_look_up fault_point=sim_fault_point fsync=disk_on_sync fdatasync=disk_on_sync kill=machine_signal
world_others = $(foreach pair,$(WORLD_OTHERS),-Wl,--wrap=$(firstword $(subst =, ,$(pair))) -Wl,--defsym=__wrap_$(pair))
$(BUILD)/tests/world/world: $(call fault_object,$(wildcard tests/world/*.c) $(KEEPER) $(CALLER)) $(BUILD)/faults/libtroupe.o \
		$(BUILD)/faults/libsupervisor.a $(BUILD)/faults/libshared.a
	$(link) $(addprefix -Wl$(comma)--wrap=,$(WORLD_WRAPS)) $(world_others) $(SUPERVISOR_LIBS) $(JANSSON_LIBS)

$(BUILD)/tests/e2e/preload/%.so: tests/e2e/preload/%.c $(STAMP)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FLAGS) -fPIC -shared -MT $@ -o $@ $<

# With the shared library, as a program that was linked with an older one runs.
$(BUILD)/tests/e2e/old-layout: $(BUILD)/obj/tests/e2e/old-layout.o $(BUILD)/libtroupe.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $< -L$(BUILD) -ltroupe -Wl,-rpath,$(abspath $(BUILD))

# Workers for tests are programs as users write them; those that break the rules need the layout too.
$(BUILD)/tests/e2e/%: $(BUILD)/obj/tests/e2e/%.o $(BUILD)/libtroupe.a $(BUILD)/libshared.a
	$(link) $(STATIC)

$(BUILD)/tests/powercut/%: $(BUILD)/obj/tests/powercut/%.o $(BUILD)/libtroupe.a $(BUILD)/libshared.a
	$(link) $(STATIC)

# With the inside of libtroupe, too: one program sends requests that the library has no call for.
$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libload.a $(BUILD)/libworker.a \
		$(BUILD)/libsupervisor.a $(BUILD)/libshared.a
	$(link) $(if $(filter floors/hops,$*),$(URING_LIBS)) $(if $(filter floors/store floors/history,$*),$(SUPERVISOR_LIBS)) $(if $(filter peers/zeromq,$*),-lzmq) $(if $(filter peers/stream,$*),$(NATS_LIBS)) \
		$(if $(filter troupe/% floors/stamp floors/keeper,$*),$(STATIC))

-include $(patsubst %.c,$(BUILD)/obj/%.d,$(filter %.c,$(OURS)))
-include $(patsubst %.c,$(BUILD)/faults/obj/%.d,$(filter %.c,$(OURS)))

# ---- first steps ----------------------------------------------------------------------------------

deps:
	@CC='$(CC)' .ci/deps

deps-present:
	@CC='$(CC)' .ci/deps --check

# The machine may lack the compiler when this make begins, hence another one for the real work.
again = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS)) BUILD='$(BUILD)' CC='$(CC)'
TESTS_ENVIRONMENT = TESTS_BUILD='$(abspath $(BUILD))' TESTS_SAN='$(SAN)' $(LOOP:%=TROUPE_LOOP=%)

run: deps
	+@$(again) all
	@$(TESTS_ENVIRONMENT) worker/examples/run $(DIR)

# The package in build/python, and a wheel in build/wheel.
python: deps
	@.ci/deps python3-dev python3-setuptools python3-wheel
	+@$(again) python-package
	+@$(again) wheel

# Of what is built, in a directory of its own: setup.py leaves files behind.
WHEEL ?= $(BUILD)/wheel
.PHONY: wheel dist
wheel:
	$(call say,WHEEL,$(WHEEL))
	$(Q)mkdir -p $(WHEEL)
	$(Q)from=$$(mktemp -d) && trap 'rm -rf "$$from"' EXIT && \
		(cd $(BUILD)/python && find troupe -name '*.py' -o -name '*.pyi' -o -name py.typed -o -name '*.so') | \
		tar -C $(BUILD)/python -cf - -T - | tar -C "$$from" -xf - && \
		install -m 644 worker/python/setup.py "$$from" && wheels=$$(realpath $(WHEEL)) && cd "$$from" && \
		TROUPE_VERSION='$(VERSION)' $(DEBIAN_PYTHON) setup.py --quiet bdist_wheel --dist-dir "$$wheels"

.PHONY: python-package
python-package: $(if $(PYTHON_MODULE),$(BUILD)/python/troupe/_troupe.abi3.so \
	$(BUILD)/tests/python/_troupe.abi3.so $(PYTHON_FILES:worker/%=$(BUILD)/%))

# ---- tests ----------------------------------------------------------------------------------------

# TESTS= chooses among them by (part of) their names.
chosen = $(if $(TESTS),$(foreach test,$(TESTS),$(foreach file,$(1),$(if $(findstring $(test),$(file)),$(file)))),$(1))
UNIT_PROGRAMS := $(call program,$(call chosen,$(UNIT_TESTS)))
STRESS_PROGRAMS := $(call program,$(call chosen,$(STRESS_TESTS)))
# They wait more than they compute.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS))))
RUN = $(TESTS_ENVIRONMENT) tests/run --jobs $(TEST_JOBS)
# What `make check` runs beside the programs.
SUITES = $(wildcard tests/nats/test_history.py tests/e2e/test_*.py tests/python/test_*.py)

# What its tests need besides: without it, 160 of them would be skipped.
check: deps
	@.ci/deps python3-dev python3-setuptools python3-wheel mypy python3-cloudpickle libpython$(PYTHON_VERSION)-testsuite \
		python3-celery python3-joblib python3-pytest python3-redis python3-rq redis-server \
		libnats-dev nats-server strace util-linux mandoc zsh fish imagemagick curl jq sqlite3 python3-markdown
	+@$(again) all test-programs
	@$(RUN) $(UNIT_PROGRAMS) $(STRESS_PROGRAMS) $(SUITES)

check-unit: deps
	+@$(again) unit-programs
	@$(RUN) $(UNIT_PROGRAMS)

# Both in one go.
check-programs: deps
	+@$(again) unit-programs stress-programs
	@$(RUN) $(UNIT_PROGRAMS) $(STRESS_PROGRAMS)

check-stress: deps
	+@$(again) stress-programs
	@$(RUN) $(STRESS_PROGRAMS)

# TESTS= here: parts of the names of test methods.
check-e2e: deps
	+@$(again) all e2e-programs
	@$(RUN) $(TESTS:%=--only %) tests/e2e/test_*.py

# Guides, README and EXAMPLES of manual pages: their files are written, their commands typed, their output compared.
check-docs: deps
	@.ci/deps python3-dev imagemagick curl jq sqlite3
	+@$(again) all e2e-programs python-package
	@$(RUN) tests/e2e/test_documents.py tests/e2e/test_manuals.py

.PHONY: test-programs unit-programs stress-programs e2e-programs
test-programs: unit-programs stress-programs e2e-programs python-package
unit-programs: $(UNIT_PROGRAMS)
stress-programs: $(STRESS_PROGRAMS)
e2e-programs: $(E2E_HELPERS) $(BUILD)/faults/trouped

check-python: deps
	@.ci/deps python3-dev python3-setuptools python3-wheel mypy
	+@$(again) all e2e-programs python-package
	@$(RUN) $(TESTS:%=--only %) tests/python/test_*.py

# The binding in Go; `make check` skips it where no compiler for it is installed. GCC's is the smaller one.
check-binding: deps
	@command -v go >/dev/null || .ci/deps gccgo
	+@$(again) all
	@$(RUN) tests/python/test_binding.py

# The page of troupe-web in Chromium; skipped where that is missing.
check-web: deps
	+@$(again) all e2e-programs
	@$(RUN) $(TESTS:%=--only %) tests/web/test_*.py

# Three NATS servers and three machines in network namespaces, which die in turn; needs root.
check-nats: deps
	@.ci/deps iproute2 libnats-dev nats-server
	+@$(again) all e2e-programs
	@$(RUN) --timeout 600 $(TESTS:%=--only %) tests/nats/test_*.py

# The numbers, alerts and dashboard in a real Prometheus; skipped where that is missing.
check-monitoring: deps
	+@$(again) all e2e-programs
	@$(RUN) $(TESTS:%=--only %) tests/monitoring/test_*.py

# The socket under Debian 13's python3-varlink and varlinkctl, in a root of their own where need be.
check-clients: deps
	+@$(again) all e2e-programs
	@tests/e2e/clients '$(BUILD)'

# Ten thousand deaths: minutes, so not part of `make check`.
check-chaos: deps
	+@$(again) all e2e-programs
	@$(TESTS_ENVIRONMENT) TESTS_CHAOS_KILLS=10000 tests/run --timeout 3600 --only chaos tests/e2e/test_*.py

# One after the other under load; TESTS_UPGRADES= and TESTS_UPGRADE_WORKERS= change the numbers.
TESTS_UPGRADES ?= 1000
TESTS_UPGRADE_WORKERS ?= 1000
check-upgrades: deps
	+@$(again) all e2e-programs
	@$(TESTS_ENVIRONMENT) TESTS_UPGRADES='$(TESTS_UPGRADES)' TESTS_UPGRADE_WORKERS='$(TESTS_UPGRADE_WORKERS)' \
		tests/run --timeout 7200 --only upgrades_under_load_lose tests/e2e/test_upgrade.py

# An own build each, beside the plain one.
check-asan: deps
	@$(MAKE) --no-print-directory BUILD='$(BUILD)/asan' SAN=address,undefined CFLAGS='-O1 -g' check

# Threads stand in for processes: what they share is the rings, the wake protocol and the state page. The store has a
# thread of its own.
check-tsan: deps
	@$(MAKE) --no-print-directory BUILD='$(BUILD)/tsan' SAN=thread CFLAGS='-O1 -g' \
		TESTS='test-ring test-wake test-channel test-memory threads store/test-store' check-programs

# The sleep and wake protocol under spin; a part left out must be found. Says so when spin is missing.
check-model:
	@CC='$(CC)' tests/model/run || [ $$? = 77 ]

# WORLD_SEEDS=FROM-TO chooses; WORLD_SECONDS=N takes fresh seeds for so long, of CPU time. `build/tests/world/world SEED --trace` repeats one.
# Without either, the mutants follow.
check-world: deps
	+@$(again) $(BUILD)/tests/world/world
	@$(BUILD)/tests/world/world $(if $(WORLD_SECONDS),--cpu-seconds=$(WORLD_SECONDS),$(or $(WORLD_SEEDS),1-200))
	$(if $(WORLD_SECONDS)$(WORLD_SEEDS),,+@BUILD='$(BUILD)' tests/world/mutants/run)

# One seed is the same world in all builds, which are as different as compilers make them.
check-world-builds: deps
	@.ci/deps clang
	+@$(again) $(BUILD)/tests/world/world
	+@$(again) BUILD='$(BUILD)/asan' SAN=address,undefined CFLAGS='-O1 -g' '$(BUILD)/asan/tests/world/world'
	+@$(again) BUILD='$(BUILD)/clang' CC=clang '$(BUILD)/clang/tests/world/world'
	@for build in . asan clang; do \
		ASAN_OPTIONS=detect_leaks=0 $(BUILD)/$$build/tests/world/world $(or $(WORLD_SEEDS),1-100) --hash 2>&1 | \
			grep '^seed .* hash' | sort >$(BUILD)/$$build/tests/world/hashes; \
		[ -s $(BUILD)/$$build/tests/world/hashes ] && \
			diff $(BUILD)/tests/world/hashes $(BUILD)/$$build/tests/world/hashes || exit 1; \
	done

# Puts real, fixed faults back; MUTANTS='NAME…' chooses, MUTANT_SECONDS=N bounds the CPU time for each.
check-world-mutants: deps
	+@$(again) $(BUILD)/tests/world/world
	+@BUILD='$(BUILD)' tests/world/mutants/run $(MUTANTS)

# While the loop waits with io_uring, valgrind lets no other thread run.
check-valgrind: LOOP = epoll
check-valgrind: deps
	@.ci/deps valgrind
	+@$(again) unit-programs
	@$(RUN) --timeout 600 --wrapper 'valgrind -q --error-exitcode=1 --leak-check=full --child-silent-after-fork=yes' \
		$(UNIT_PROGRAMS)

check-systemd: deps
	+@$(again) all e2e-programs python-package
	@$(TESTS_ENVIRONMENT) tests/systemd/run || [ $$? = 77 ]

# Half an hour for TESTS_CUTS=5000.
check-powercut: deps
	+@$(again) all e2e-programs $(BUILD)/tests/powercut/ring $(BUILD)/tests/powercut/mutant/trouped
	@$(TESTS_ENVIRONMENT) tests/run --timeout 7200 $(TESTS:%=--only %) tests/powercut/test_*.py

# trixie has kernel 6.12, bookworm 6.1.
SUITE ?= trixie
check-vm: deps
	+@$(again) all e2e-programs python-package
	@$(TESTS_ENVIRONMENT) tests/vm/run -s $(SUITE) || [ $$? = 77 ]

# The container's image, built without a registry, and run by podman.
check-image: deps
	@.ci/deps buildah podman crun mmdebstrap
	@tests/image/run || [ $$? = 77 ]

# Packages on bare Debian 12 and 13; builds them, which takes minutes.
check-packages: deps
	@.ci/deps systemd-container mmdebstrap
	@$(TESTS_ENVIRONMENT) tests/packages/run || [ $$? = 77 ]

# Seconds per target.
FUZZ_SECONDS ?= 20
fuzz: deps
	@.ci/deps clang
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD='$(BUILD)/fuzz' CC=clang SAN=fuzzer-no-link,address,undefined \
		CFLAGS='-O1 -g' FUZZING=1 fuzz-programs
	@for fuzzer in $(FUZZERS:tests/fuzz/%.c=%); do \
		echo "fuzz: $$fuzzer, $(FUZZ_SECONDS) s"; \
		mkdir -p $(BUILD)/fuzz/corpus/$$fuzzer; \
		$(BUILD)/fuzz/tests/fuzz/$$fuzzer -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 -verbosity=0 \
			-artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus/$$fuzzer || exit 1; \
	done

.PHONY: fuzz-programs
fuzz-programs: $(call program,$(FUZZERS))
$(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/libctl.a $(BUILD)/libcaller.a $(BUILD)/libsupervisor.a \
		$(BUILD)/libworker.a $(BUILD)/libshared.a
	$(link) $(SUPERVISOR_LIBS) $(JANSSON_LIBS) -fsanitize=fuzzer

# BENCH= chooses among the measures by (the beginning of) their names. Peers that are missing are skipped.
bench bench-quick: deps
	+@$(again) all bench-programs python-package
	@$(TESTS_ENVIRONMENT) tests/bench/run $(if $(filter bench-quick,$@),--quick) $(BENCH)

# Of the supervisor, per job: figures that a noisy machine does not change.
bench-instructions: deps
	@.ci/deps valgrind
	+@$(again) all bench-programs
	@$(TESTS_ENVIRONMENT) tests/bench/instructions.py

bench-deps:
	@.ci/deps beanstalkd redis-server gunicorn uwsgi-core uwsgi-plugin-python3 python3-dev python3-celery python3-rq gearman-job-server nats-server libnats-dev libzmq3-dev runit s6 supervisor bubblewrap linux-perf valgrind

.PHONY: bench-programs
bench-programs: $(call program,$(BENCHES))

# ---- looks ----------------------------------------------------------------------------------------

# TIDY_CHECKS=-clang-analyzer-* leaves out what takes most of the time.
TIDY := $(PRODUCT:%=tidy/%)
.PHONY: $(TIDY)
$(TIDY): tidy/%: %
	$(call say,TIDY,$<)
	$(Q)clang-tidy --quiet $(TIDY_CHECKS:%=--checks='%') --warnings-as-errors='*' $< -- -std=gnu17 -I. -D_GNU_SOURCE -DTROUPE_VERSION='"$(VERSION)"' -DTROUPE_LIBEXECDIR='""' \
		$(if $(filter worker/python/%,$<),$(PYTHON_FLAGS)) 2>/dev/null

lint: deps
	@.ci/deps clang-format clang-tidy shellcheck mandoc
	clang-format --dry-run -Werror $(OURS)
	+@$(again) $(TIDY)
	$(if $(MANUALS),mandoc -T lint -W warning $(MANUALS))
	$(if $(SCRIPTS),shellcheck $(SCRIPTS))
	+@$(again) check-layers

# No folder knows a later one in the table of CONTRIBUTING.md, and no calls run in circles.
check-layers: deps
	+@$(again) all
	@tests/layers $(BUILD)

fmt:
	@.ci/deps clang-format
	clang-format -i $(OURS)

# ---- site -----------------------------------------------------------------------------------------

# README, guides and manual pages as static pages, which need no server. Nothing is downloaded but Debian's packages.
site: deps
	@.ci/deps mandoc python3-markdown
	@$(DEBIAN_PYTHON) units/site/build '$(VERSION)' '$(BUILD)/site' $(MANUALS)

# ---- install --------------------------------------------------------------------------------------

# @NAME@ in what is installed; paths in units, manuals and README are written for /usr.
SUBSTITUTE = sed -e 's|@prefix@|$(PREFIX)|g' -e 's|@libdir@|$(LIBDIR)|g' -e 's|@includedir@|$(INCLUDEDIR)|g' \
	-e 's|@libexecdir@|$(LIBEXECDIR)|g' -e 's|@version@|$(VERSION)|g' -e 's|/usr/sbin/|$(SBINDIR)/|g' \
	-e 's|"worker/troupe.h"|<troupe.h>|' -e 's|/usr/bin/troupe|$(BINDIR)/troupe|g' -e 's|/usr/libexec/troupe/|$(LIBEXECDIR)/|g' \
	-e 's|/usr/share/troupe/|$(PREFIX)/share/troupe/|g' -e 's|/usr/share/doc/troupe/|$(DOCDIR)/|g' \
	-e 's|units/guides/|guides/|g'

COMPLETION := supervisor/ctl/complete
# MODE:SOURCE:DESTINATION. `uninstall` removes exactly these. Mode "in": 644, after substitution. Workers
# must not read troupe-trace: then the kernel lets no worker trace it, which has its user, but not its sandbox.
install_all = $(foreach file,$(2),$(1):$(file):$(3)/$(notdir $(file:.in=)))
INSTALLED = \
	$(call install_all,755,$(BUILD)/trouped,$(SBINDIR)) \
	$(call install_all,755,$(BUILD)/troupectl $(BUILD)/troupe-web $(if $(NATS),$(BUILD)/troupe-nats) $(if $(OTLP),$(BUILD)/troupe-otlp),$(BINDIR)) \
	$(call install_all,755,$(BUILD)/trouped-supervisor $(BUILD)/troupe-exec $(EXAMPLE_PROGRAMS) units/after-upgrade units/demo,$(LIBEXECDIR)) \
	$(if $(TRACE),$(call install_all,711,$(BUILD)/troupe-trace,$(LIBEXECDIR))) \
	$(call install_all,644,$(BUILD)/$(SONAME) $(BUILD)/libtroupe.a,$(LIBDIR)) \
	$(call install_all,in,worker/troupe.pc.in,$(LIBDIR)/pkgconfig) \
	$(if $(PYTHON_MODULE),$(call install_all,644,$(BUILD)/python/troupe/_troupe.abi3.so,$(PYTHONDIR)/troupe) \
		$(foreach file,$(PYTHON_FILES),644:$(file):$(PYTHONDIR)/$(file:worker/python/%=%))) \
	$(call install_all,644,worker/troupe.h worker/troupe-actor.h worker/troupe-query.h,$(INCLUDEDIR)) \
	$(call install_all,in,README.md,$(DOCDIR)) \
	$(call install_all,644,CHANGELOG.md LICENSE,$(DOCDIR)) \
	$(call install_all,in,$(wildcard units/guides/*.md),$(DOCDIR)/guides) \
	$(call install_all,in,$(wildcard worker/examples/*.group.in worker/examples/*.exchange.in units/*.example units/examples/*),$(DOCDIR)/examples) \
	$(call install_all,in,$(wildcard worker/examples/*.c worker/examples/go/*.go),$(DOCDIR)/examples) \
	$(foreach section,1 3 5 7 8,$(call install_all,in,$(filter %.$(section),$(MANUALS)),$(MANDIR)/man$(section))) \
	$(call install_all,644,$(filter-out %/org.varlink.service.varlink,$(INTERFACES)),$(PREFIX)/share/troupe/varlink) \
	$(call install_all,644,$(wildcard units/monitoring/*),$(PREFIX)/share/troupe/monitoring) \
	$(call install_all,in,$(wildcard units/bpftrace/*),$(PREFIX)/share/troupe/bpftrace) \
	$(call install_all,in,$(filter-out $(if $(OTLP),,%/troupe-otlp.service),$(wildcard units/*.service units/*.socket units/*.timer)),$(SYSTEMDDIR)/systemd/system) \
	$(call install_all,644,$(wildcard units/*.catalog),$(SYSTEMDDIR)/systemd/catalog) \
	$(call install_all,644,$(filter-out $(if $(NATS),,%/troupe-nats.conf) $(if $(OTLP),,%/troupe-otlp.conf),$(wildcard units/sysusers.d/*)),$(SYSTEMDDIR)/sysusers.d) \
	$(call install_all,644,$(wildcard units/tmpfiles.d/*),$(SYSTEMDDIR)/tmpfiles.d) \
	644:$(COMPLETION)/troupectl.bash:$(PREFIX)/share/bash-completion/completions/troupectl \
	644:$(COMPLETION)/_troupectl:$(PREFIX)/share/zsh/vendor-completions/_troupectl \
	644:$(COMPLETION)/troupectl.fish:$(PREFIX)/share/fish/vendor_completions.d/troupectl.fish

install: all python-package
	@$(MAKE) --no-print-directory install-files

# Of what has been built, as it is.
install-files:
	@set -e; for entry in $(INSTALLED); do \
		mode=$${entry%%:*}; rest=$${entry#*:}; source=$${rest%%:*}; to='$(DESTDIR)'$${rest#*:}; \
		install -d "$$(dirname "$$to")"; \
		if [ $$mode = in ]; then \
			$(SUBSTITUTE) "$$source" > "$$to"; chmod 644 "$$to"; \
		else \
			install -m $$mode "$$source" "$$to"; \
		fi; \
	done
	@ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libtroupe.so'
	@$(if $(DESTDIR),,ldconfig 2>/dev/null || true)

uninstall:
	@for entry in $(INSTALLED); do rm -f '$(DESTDIR)'"$${entry##*:}"; done
	@rm -f '$(DESTDIR)$(LIBDIR)/libtroupe.so'
	@rm -rf '$(DESTDIR)$(PYTHONDIR)/troupe/__pycache__' '$(DESTDIR)$(PYTHONDIR)/troupe/executor/__pycache__'
	@rmdir '$(DESTDIR)$(PYTHONDIR)/troupe/executor' '$(DESTDIR)$(PYTHONDIR)/troupe' 2>/dev/null || true
	@rmdir '$(DESTDIR)$(LIBEXECDIR)' '$(DESTDIR)$(DOCDIR)/examples' '$(DESTDIR)$(DOCDIR)/guides' '$(DESTDIR)$(DOCDIR)' \
		'$(DESTDIR)$(PREFIX)/share/troupe/varlink' '$(DESTDIR)$(PREFIX)/share/troupe/monitoring' \
		'$(DESTDIR)$(PREFIX)/share/troupe/bpftrace' '$(DESTDIR)$(PREFIX)/share/troupe' 2>/dev/null || true

deb-deps: deps
	@.ci/deps build-essential debhelper dh-python dpkg-dev libnats-dev python3-dev systemd systemtap-sdt-dev

# Debian packages of this tree. VERSION= gives them, and the programs, another version.
deb: deb-deps
	@units/debian/make-deb '$(VERSION)' '$(BUILD)/deb'

# The files of a release, made from the last commit: the archive, a bill of materials, SHA256SUMS.
dist:
	@units/dist/make-dist '$(VERSION)' '$(BUILD)/dist'

clean:
	rm -rf $(BUILD)

help:
	@echo 'make run            see it work: real files through workers that crash (DIR=/usr/share/doc)'
	@echo 'make check          unit, stress and end-to-end tests (TESTS= chooses)'
	@echo 'make check-unit check-stress check-e2e'
	@echo 'make check-docs     that README, guides and EXAMPLES of manual pages show what one sees'
	@echo 'make python         the package troupe for Python, in build/python, and a wheel'
	@echo 'make check-python   its tests'
	@echo 'make check-binding  the binding in Go (installs gccgo if there is no go)'
	@echo 'make check-asan     the same with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make check-tsan     rings and wake-ups under ThreadSanitizer'
	@echo 'make check-world-mutants   whether it finds faults that were fixed once'
	@echo 'make check-world-builds    whether a seed is the same in another build'
	@echo 'make check-world    the whole in one process under a virtual clock; then the mutants, or WORLD_SEEDS=1-300, or WORLD_SECONDS=100'
	@echo 'make check-model    models of the wake-ups and of an upgrade, searched by spin for what is lost'
	@echo 'make check-valgrind unit tests under valgrind'
	@echo 'make check-systemd  under a real, booted systemd (root, systemd-nspawn)'
	@echo 'make check-powercut that jobs on disk survive TESTS_CUTS=500 power cuts (root, qemu-storage-daemon)'
	@echo 'make check-vm       on a Debian kernel of its own, SUITE=trixie|bookworm (root, qemu, minutes)'
	@echo 'make check-packages that packages install, upgrade under load and are removed on Debian 12 and 13 (root)'
	@echo 'make check-image    the image of units/container, built and run (root, buildah, podman, minutes)'
	@echo 'make check-layers   that no folder knows a later one, and no calls run in circles'
	@echo 'make check-web      the page of troupe-web in a browser (chromium)'
	@echo 'make check-nats     jobs on three machines from three NATS servers, all of which die in turn'
	@echo 'make check-monitoring numbers, alerts and dashboard in a real Prometheus (prometheus)'
	@echo 'make check-clients  the socket under python3-varlink and varlinkctl (root, mmdebstrap)'
	@echo 'make check-chaos    10,000 workers killed while jobs run (minutes)'
	@echo 'make check-upgrades that TESTS_UPGRADES=1000 upgrades under load lose nothing and do nothing twice'
	@echo 'make fuzz           FUZZ_SECONDS=20 per target, with clang'
	@echo 'make bench          Troupe beside its floor and its peers (BENCH= chooses; bench-quick: 3 minutes)'
	@echo 'make bench-instructions'
	@echo '                    instructions per job in the supervisor, by callgrind'
	@echo 'make bench-deps     the peers, by apt-get'
	@echo 'make lint fmt       static analysis, layers; layout'
	@echo 'make site           README, guides and manual pages as a static site with a search, in build/site'
	@echo 'make install        DESTDIR= PREFIX=/usr; and uninstall'
	@echo 'make deb            Debian packages, in build/deb'
	@echo 'make dist           the archive of a release with its bill of materials and SHA256SUMS, in build/dist'
	@echo 'make deps           what is missing, by apt-get; run and check do it by themselves'
	@echo 'make clean'
	@echo 'Variables: BUILD=build CC=gcc|clang V=1 W=error SAN=address,undefined CFLAGS= LDFLAGS= JOBS= TEST_JOBS= LOOP=epoll'
