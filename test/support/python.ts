/** Programs of PyPI that tests drive. `make python-packages` installs them. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './journey.ts';

/** Where Jupyter and py-spy are; undefined, said out loud, where not. With CI=true an error. */
export function insidePython(): string | undefined {
  const bin = path.join(ROOT, '.cache/python/inside/bin');
  if (existsSync(path.join(bin, 'jupyter-lab')) && existsSync(path.join(bin, 'py-spy'))) return bin;
  const message = 'Jupyter and py-spy are not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}

/** Where the real uv and a Python with py-rattler are; undefined, said out loud, where not. */
export function environmentPython(): string | undefined {
  const bin = path.join(ROOT, '.cache/python/environments/bin');
  const rattler = globSync('../lib/python3*/site-packages/rattler', { cwd: bin });
  if (existsSync(path.join(bin, 'uv')) && rattler.length > 0) return bin;
  const message = 'uv and py-rattler are not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}

/** Where schemathesis is; undefined, said out loud, where it is not. With CI=true an error. */
export function apiPython(): string | undefined {
  const bin = path.join(ROOT, '.cache/python/api/bin');
  if (existsSync(path.join(bin, 'schemathesis'))) return bin;
  const message = 'schemathesis is not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}

const GRPC_PYTHON = path.join(ROOT, '.cache/python/grpc/bin/python');

/** Whether Python has grpcio; false, said out loud, where not. With CI=true an error. */
export function grpcIsHere(): boolean {
  if (existsSync(GRPC_PYTHON)) return true;
  const message = 'grpcio is not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return false;
}

/** Python with grpcio, and in the folder what its tools make of proto/. */
export function grpcPython(folder: string): string {
  const proto = path.join(ROOT, 'proto');
  const files = globSync('drover/v1/*.proto', { cwd: proto });
  const out = [`--python_out=${folder}`, `--grpc_python_out=${folder}`];
  const args = ['-m', 'grpc_tools.protoc', '-I', proto, ...out, ...files];
  execFileSync(GRPC_PYTHON, args, { cwd: proto });
  return GRPC_PYTHON;
}
