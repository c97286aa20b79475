/** A conda channel in a folder: packages of our own and the list of them, as solvers read it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface CondaPackage {
  name: string;
  version: string;
  depends?: string[];
  /** By path in the environment; those in bin/ can be run. */
  files: Record<string, string>;
}

/** A package is an archive with an index of itself; it prints what the channel says of it. */
const MAKE = `
import hashlib, io, json, sys, tarfile
archive, package = sys.argv[1], json.loads(sys.argv[2])
files = package.pop("files")
hashed = lambda text: hashlib.sha256(text.encode()).hexdigest()
index = {"build": "0", "build_number": 0, "noarch": "generic", "subdir": "noarch", **package}
paths = [
    {"_path": path, "path_type": "hardlink", "sha256": hashed(text), "size_in_bytes": len(text)}
    for path, text in files.items()
]
files["info/index.json"] = json.dumps(index)
files["info/paths.json"] = json.dumps({"paths_version": 1, "paths": paths})
with tarfile.open(archive, "w:bz2") as tar:
    for path, text in files.items():
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(text.encode()), 0o755 if path.startswith("bin/") else 0o644
        tar.addfile(info, io.BytesIO(text.encode()))
with open(archive, "rb") as file:
    data = file.read()
sums = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}
print(json.dumps({**index, **sums, "size": len(data)}))
`;

export function makeChannel(folder: string, packages: CondaPackage[]): void {
  const found: Record<string, unknown> = {};
  mkdirSync(path.join(folder, 'noarch'), { recursive: true });
  for (const one of packages) {
    const name = `${one.name}-${one.version}-0.tar.bz2`;
    const given = JSON.stringify({ depends: [], ...one });
    const args = ['-c', MAKE, path.join(folder, 'noarch', name), given];
    found[name] = JSON.parse(execFileSync('python3', args, { encoding: 'utf8' }));
  }
  for (const [subdir, list] of [
    ['noarch', found],
    ['linux-64', {}],
  ] as const) {
    mkdirSync(path.join(folder, subdir), { recursive: true });
    const data = { info: { subdir }, packages: list, 'packages.conda': {}, repodata_version: 1 };
    writeFileSync(path.join(folder, subdir, 'repodata.json'), JSON.stringify(data));
  }
}
