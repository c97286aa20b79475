/** Small Python packages of our own in a folder that pip and uv install from, without any index. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

const MAKE = `
import sys, zipfile, hashlib, base64
folder, name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}.py": f"VERSION = __version__ = '{version}'\\n",
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    record = ""
    for path, text in files.items():
        wheel.writestr(path, text)
        digest = hashlib.sha256(text.encode()).digest()
        named = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        record += f"{path},sha256={named},{len(text)}\\n"
    wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\\n")
`;

export function makeWheel(folder: string, name: string, version: string): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('python3', ['-c', MAKE, folder, name, version]);
}
