# SPDX-License-Identifier: MIT
"""Keys, claims of NATS's decentralised authentication, and certificates, as far as the tests need them: openssl does the signatures."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

OPERATOR, ACCOUNT, USER = (number << 3 for number in (14, 0, 20))  # O, A, U in base 32
SEED = 18 << 3  # S


def checksum(data):
    """CRC-16/XMODEM, little endian."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
    return (crc & 0xffff).to_bytes(2, "little")


def written(data):
    return base64.b32encode(data + checksum(data)).decode().rstrip("=")


def token(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def certificate(test, name="IP:127.0.0.1"):
    """A certificate for a host, which vouches for itself, and its key: two files."""
    directory = tempfile.mkdtemp(prefix="troupe-tls-")
    test.addCleanup(shutil.rmtree, directory)
    paths = [os.path.join(directory, file) for file in ("certificate.pem", "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-out", paths[0],
                    "-keyout", paths[1], "-subj", "/CN=troupe", "-addext", f"subjectAltName={name}", "-days", "2"],
                   check=True, capture_output=True)
    return paths


class Key:
    """An Ed25519 key in a directory of its own, as NATS writes such keys."""

    def __init__(self, test, kind):
        self.kind = kind
        self.directory = tempfile.mkdtemp(prefix="troupe-nkey-")
        test.addCleanup(shutil.rmtree, self.directory)
        self.private = self._path("private.pem")
        self._openssl("genpkey", "-algorithm", "ed25519", "-out", self.private)
        self.seed = self._openssl("pkey", "-in", self.private, "-outform", "DER")[-32:]
        self.public = written(bytes([kind]) + self._openssl("pkey", "-in", self.private, "-pubout", "-outform", "DER")[-32:])

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _openssl(self, *arguments):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout

    def _write(self, name, text):
        path = self._path(name)
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(text)
        return path

    def seed_text(self):
        return written(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]) + self.seed)

    def seed_file(self):
        return self._write("user.nk", self.seed_text() + "\n")

    def claims(self, subject, name, **nats):
        """What this key says of another one."""
        head = token(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = token(json.dumps({"jti": name, "iat": 1700000000, "iss": self.public, "name": name, "sub": subject.public,
                                 "nats": {"version": 2, **nats}}).encode())
        signed, signature = self._write(f"{name}.signed", f"{head}.{body}"), self._path(f"{name}.signature")
        self._openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.private, "-in", signed, "-out", signature)
        with open(signature, "rb") as file:
            return f"{head}.{body}.{token(file.read())}"

    def credentials_file(self, claims):
        return self._write("user.creds", f"-----BEGIN NATS USER JWT-----\n{claims}\n------END NATS USER JWT------\n\n"
                           f"-----BEGIN USER NKEY SEED-----\n{self.seed_text()}\n------END USER NKEY SEED------\n")


class Tree:
    """An operator, and accounts with a user each."""

    NO_LIMIT = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage",
                              "streams", "consumer"), -1)

    def __init__(self, test, accounts=("jobs", "other")):
        self.operator = Key(test, OPERATOR)
        self.accounts = {name: Key(test, ACCOUNT) for name in ("system", *accounts)}
        self.users = {name: Key(test, USER) for name in accounts}

    def server_configuration(self):
        limits = {"jobs": {"wildcards": True, **self.NO_LIMIT}, "other": {"wildcards": True, **self.NO_LIMIT},
                  "system": {"wildcards": True, **self.NO_LIMIT, "mem_storage": 0, "disk_storage": 0}}
        accounts = "\n".join(
            f"  {key.public}: {self.operator.claims(key, name, type='account', limits=limits[name])}"
            for name, key in self.accounts.items())
        return (f"operator: {self.operator.claims(self.operator, 'operator', type='operator')}\nresolver: MEMORY\n"
                f"system_account: {self.accounts['system'].public}\nresolver_preload {{\n{accounts}\n}}\n")

    def credentials(self, account):
        user = self.users[account]
        return user.credentials_file(self.accounts[account].claims(user, f"user-of-{account}", type="user", subs=-1, data=-1,
                                                                   payload=-1, pub={}, sub={}))
