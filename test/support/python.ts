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

/** The real uv; undefined, said out loud, where it is not installed. With CI=true an error. */
export function uvProgram(): string | undefined {
  const program = path.join(ROOT, '.cache/python/environments/bin/uv');
  if (existsSync(program)) return program;
  const message = 'uv is not installed (make python-packages)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`NOT TESTED: ${message}`);
  return undefined;
}

/** Python with grpcio, and what its tools make of proto/ in the folder; undefined as above. */
export function grpcPython(folder: string): string | undefined {
  const python = path.join(ROOT, '.cache/python/grpc/bin/python');
  if (!existsSync(python)) {
    const message = 'grpcio is not installed (make python-packages)';
    if (process.env['CI'] === 'true') throw new Error(message);
    console.warn(`NOT TESTED: ${message}`);
    return undefined;
  }
  const proto = path.join(ROOT, 'proto');
  const files = globSync('drover/v1/*.proto', { cwd: proto });
  const out = [`--python_out=${folder}`, `--grpc_python_out=${folder}`];
  execFileSync(python, ['-m', 'grpc_tools.protoc', '-I', proto, ...out, ...files], { cwd: proto });
  return python;
}
