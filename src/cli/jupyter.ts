/** How Jupyter is started as a job, and where it is found then. */

/** What the script is called, by which a notebook is told from other jobs. */
const MARK = 'drover-notebook';

/** Unique, because several may run in one directory. */
function name(job: string): string {
  return `notebook-${job}`;
}

export function socketName(job: string): string {
  return `${name(job)}.sock`;
}

export function notebookEndpoint(job: string): string {
  return `${job}.0:${name(job)}`;
}

/**
 * A socket that only its user can open, instead of a port and a password: whoever comes through the
 * gateway has shown a token, and nobody else comes.
 */
const SCRIPT = `
set -eu
idle=$1; shift
if ! command -v jupyter-lab >/dev/null && ! command -v jupyter-server >/dev/null; then
  echo 'no Jupyter here: getting jupyterlab from PyPI' >&2
  python3 -m venv --system-site-packages .drover-jupyter
  .drover-jupyter/bin/pip install --quiet --disable-pip-version-check jupyterlab >&2
  PATH=$PWD/.drover-jupyter/bin:$PATH; export PATH
fi
if command -v jupyter-lab >/dev/null; then program=jupyter-lab; else program=jupyter-server; fi
if [ "$idle" -gt 0 ]; then
  set -- --ServerApp.shutdown_no_activity_timeout="$idle" \\
    --MappingKernelManager.cull_idle_timeout="$idle" \\
    --MappingKernelManager.cull_interval="$((idle / 4 + 1))" \\
    --TerminalManager.cull_inactive_timeout="$idle" \\
    --TerminalManager.cull_interval="$((idle / 4 + 1))" "$@"
fi
exec "$program" --no-browser --allow-root \\
  --ServerApp.sock="notebook-$DROVER_JOB_ID.sock" --ServerApp.sock_mode=0600 \\
  --ServerApp.base_url="/proxy/$DROVER_TASK_ID:notebook-$DROVER_JOB_ID/" \\
  --ServerApp.root_dir="$PWD" --ServerApp.allow_remote_access=True \\
  --IdentityProvider.token= --PasswordIdentityProvider.hashed_password= "$@"
`;

export function jupyterCommand(idleMs: number, jupyterOptions: string[]): string[] {
  const idleSeconds = String(Math.ceil(idleMs / 1000));
  return ['/bin/sh', '-c', SCRIPT, MARK, idleSeconds, ...jupyterOptions];
}

export function isNotebook(command: string[]): boolean {
  return command[3] === MARK;
}
