# SPDX-License-Identifier: MIT
"""A disk that loses its power.

Disk is an ext4 on a loop device over a FUSE export of qemu-storage-daemon, whose blklogwrites driver logs each write
and each flush (in the format of dm-log-writes). Cuts makes of the log what a power cut may leave at any entry:
everything up to the last flush, and of each later write all, a part or nothing. Killing a process is no power cut:
what it wrote stays in the page cache.
"""
import contextlib
import ctypes
import os
import random
import shutil
import struct
import subprocess
import time

SIZE = 64 << 20
LOG_SIZE = 4 << 30  # sparse
SECTOR = 512  # the unit in which a write is torn
LIMIT = 120  # seconds
MAGIC, FLUSH, DISCARD = 0x6A736677736872, 1, 4
SUPER, ENTRY = struct.Struct("<QQQI"), struct.Struct("<QQQQ")
CLONE_NEWNS = 0x20000


def why_impossible():
    """None, or what is missing on this machine."""
    if os.geteuid() != 0:
        return "mounting takes root"
    for tool, package in (("qemu-storage-daemon", "qemu-system-common"), ("mkfs.ext4", "e2fsprogs")):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:/usr/sbin"):
            return f"{tool} is missing (package {package})"
    for device in ("/dev/fuse", "/dev/loop-control"):
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            return f"{device}: {error.strerror}"
    return None


def private_mounts():
    """Whatever this process mounts is unmounted at its end."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount", "--make-rprivate", "/")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def repair(image):
    """What a boot does if a write of the file system's own was torn."""
    done = subprocess.run(["e2fsck", "-f", "-y", image], capture_output=True, text=True, timeout=LIMIT, check=False)
    print(done.stdout)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{image} cannot be repaired: {done.stderr.strip()}")


@contextlib.contextmanager
def mounted(device, directory, *options, repairs=False):
    try:
        run("mount", *options, device, directory)
    except RuntimeError as error:
        if not repairs:
            raise
        print(error)
        repair(device)
        run("mount", *options, device, directory)
    try:
        yield directory
    finally:
        run("umount", directory)


def small(directory, size):
    """Makes a file system of its own for a context, on a plain loop device."""
    image, mount = os.path.join(directory, "small"), os.path.join(directory, "small.mount")
    os.mkdir(mount)
    with open(image, "wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", image)
    return mounted(image, mount, "-o", "loop")


class Disk:
    """Within `with`, `mount` is an empty file system; afterwards, `log` is the log of it."""

    def __init__(self, directory):
        self.log, self.mount = os.path.join(directory, "log"), os.path.join(directory, "mount")
        self.image, self.export = os.path.join(directory, "image"), os.path.join(directory, "export")

    def __enter__(self):
        os.mkdir(self.mount)
        for path, size in ((self.image, SIZE), (self.log, LOG_SIZE), (self.export, 0)):
            with open(path, "wb") as file:
                file.truncate(size)
        with contextlib.ExitStack() as stack:
            self.fd = os.open(self.log, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, self.fd)
            self._start_daemon(stack)
            run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.export, f"{SIZE >> 10}k")
            stack.enter_context(mounted(self.export, self.mount, "-o", "loop"))
            self.begin = self.position()  # earlier cuts leave no file system
            self.stack = stack.pop_all()
        return self

    def _start_daemon(self, stack):
        self.daemon = daemon = subprocess.Popen([
            "setpriv", "--pdeathsig", "KILL", "qemu-storage-daemon",
            "--blockdev", f"driver=file,filename={self.image},node-name=disk",
            "--blockdev", f"driver=file,filename={self.log},node-name=log",
            "--blockdev", "driver=blklogwrites,node-name=logged,file=disk,log=log,log-sector-size=512,"
                          "log-append=off,log-super-update-interval=1",
            "--export", f"type=fuse,id=export,node-name=logged,mountpoint={self.export},writable=on,allow-other=off"])
        stack.callback(subprocess.run, ["umount", "--lazy", self.export], stderr=subprocess.DEVNULL, check=False)
        stack.callback(daemon.wait)
        stack.callback(daemon.terminate)
        limit = time.monotonic() + LIMIT
        while os.stat(self.export).st_size == 0:
            if daemon.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("qemu-storage-daemon does not export the disk")
            time.sleep(0.01)

    def __exit__(self, *_):
        self.stack.close()

    def die(self):
        """From now on, reads and writes fail."""
        self.daemon.kill()
        self.daemon.wait()

    def position(self):
        """The number of entries in the log. What is on disk now is there after each cut at this entry or later."""
        return SUPER.unpack(os.pread(self.fd, SUPER.size, 0))[2]


class Cuts:
    """The power cuts of a log. A cut at entry k keeps the entries before k, as far as the disk's cache allows."""

    def __init__(self, log, seed):
        self.random = random.Random(seed)
        self.entries = []  # (offset, data, flags)
        with open(log, "rb") as file:
            magic, _, n, sector_size = SUPER.unpack(file.read(SUPER.size))
            if magic != MAGIC:
                raise ValueError(f"{log} is not a log of block writes")
            file.seek(sector_size)
            for _ in range(n):
                sector, n_sectors, flags, _ = ENTRY.unpack(file.read(sector_size)[:ENTRY.size])
                size = n_sectors * sector_size
                self.entries.append((sector * sector_size, bytes(size) if flags & DISCARD else file.read(size), flags))
        self.n_flushes = sum(bool(entry[2] & FLUSH) for entry in self.entries)

    def images(self, positions, base, image):
        """Yields each of these positions, in their order, with the disk as it is left in the file `image`. Keeps in the
        file `base` what was flushed."""
        applied = 0
        for path in (base, image):
            with open(path, "wb") as file:
                file.truncate(SIZE)
        for position in sorted(positions):
            with open(base, "r+b") as file:
                flushed = max((i + 1 for i in range(applied, position) if self.entries[i][2] & FLUSH), default=applied)
                for offset, data, _ in self.entries[applied:flushed]:
                    file.seek(offset)
                    file.write(data)
                applied = flushed
            run("cp", "--sparse=always", base, image)
            with open(image, "r+b") as file:
                fates = self.random.choice(((1, 1), (0, 0), (0.4, 0.6)))  # all are kept, or none
                for offset, data, _ in self.entries[flushed:position]:
                    file.seek(offset)
                    file.write(data[:self._kept(len(data), *fates)])
            yield position

    def _kept(self, size, whole, torn):
        chance = self.random.random()
        if chance < whole:
            return size
        return self.random.randrange(size // SECTOR + 1) * SECTOR if chance < torn else 0
