/**
 * The shell that a job runs: it tells the agent who it is and how to find home, starts one on each
 * node and waits. The join token is in the script alone, which Slurm keeps for its owner; what goes
 * into the arguments of a process holds no secret.
 */
import type { LaunchBatch } from '../contract.ts';
import { quote } from '../remote/quote.ts';

/** What people see in place of it. */
export const MASKED_TOKEN = '********';

export interface AgentProgram {
  batch: LaunchBatch;
  site: string;
  /** A line of shell; empty: the gateway's own installer. */
  agentCommand: string;
  /** What its agents dial in place of the gateway; empty: the gateway. */
  connectorUrl: string;
  /** Empty: $TMPDIR or /tmp. */
  scratch: string;
}

const INSTALL =
  'curl -fsSL ${DROVER_CA_FILE:+--cacert "$DROVER_CA_FILE"} "$DROVER_URL/install/join.sh" | sh';

/** Exports for every agent of the job, the token among them. */
export function environmentText(
  { batch, site, connectorUrl }: AgentProgram,
  tokenOf: (joinToken: string) => string,
): string {
  const { agent, intents } = batch;
  const lines = [
    `export DROVER_URL=${quote(connectorUrl || agent.url)}`,
    ...(connectorUrl ? ['export DROVER_AGENT_DIAL_HOME=true'] : []),
    `export DROVER_AGENT_NETWORK=${quote(`slurm:${site}`)}`,
    `export DROVER_AGENT_SELF_DESTRUCT_AFTER_MS=${agent.selfDestructAfterMs}`,
  ];
  if (agent.authorities) {
    lines.push(`export DROVER_SLURM_AUTHORITIES=${quote(agent.authorities)}`);
  }
  const words = (label: string, token: string): string =>
    `DROVER_AGENT_INSTANCE=${quote(label)} DROVER_JOIN_TOKEN=${quote(tokenOf(token))}`;
  const [first] = intents;
  if (intents.length > 1) {
    lines.push('case "$SLURM_ARRAY_TASK_ID" in');
    for (const [place, intent] of intents.entries()) {
      lines.push(`${place}) ${words(intent.label, intent.joinToken)} ;;`);
    }
    lines.push('esac');
  } else if (first) lines.push(words(first.label, first.joinToken));
  lines.push('export DROVER_AGENT_INSTANCE DROVER_JOIN_TOKEN');
  return lines.join('\n');
}

/**
 * For `sh` on a node: one agent, with what the job was given there and no more. Its files are this
 * job's own, since a home folder is shared by many nodes.
 */
export function agentText({ site, agentCommand, scratch }: AgentProgram): string {
  // Variables in it are the job's: /scratch/$USER.
  const plain = scratch.replaceAll(/["\\`]/g, String.raw`\$&`);
  const folder = `"${plain || '${TMPDIR:-/tmp}'}"`;
  return `
job=\${SLURM_ARRAY_JOB_ID:+\${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=\${job:-$SLURM_JOB_ID}
rank=\${SLURM_PROCID:-0}
export DROVER_AGENT_MACHINE=${quote(`slurm:${site}:`)}"$job:$rank"
export DROVER_AGENT_HOST="\${SLURMD_NODENAME:-$(hostname -s)}"
export DROVER_AGENT_NAME=${quote(`${site}-`)}"$job-$rank"
umask 077
mkdir -p ${folder}
folder=${folder}/drover-$(id -u)-$job-$rank
rm -rf "$folder"
mkdir "$folder" || exit 75
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT
export DROVER_AGENT_DATA_DIR="$folder/agent"
if [ -n "\${DROVER_SLURM_AUTHORITIES-}" ]; then
  export DROVER_CA_FILE="$folder/authorities.pem"
  printf '%s\\n' "$DROVER_SLURM_AUTHORITIES" >"$DROVER_CA_FILE"
  unset DROVER_SLURM_AUTHORITIES
fi
# Where Slurm counts GPUs, a job that was given none must offer none; elsewhere the node's are its.
if [ -z "\${CUDA_VISIBLE_DEVICES+set}" ] &&
  scontrol show config 2>/dev/null | grep -Eq '^GresTypes *=.*gpu'; then
  export CUDA_VISIBLE_DEVICES=
fi
if [ -z "\${DROVER_AGENT_RESOURCES-}" ]; then
  cpus=\${SLURM_CPUS_ON_NODE:-1}
  memory=\${SLURM_MEM_PER_NODE:-$((\${SLURM_MEM_PER_CPU:-0} * cpus))}
  DROVER_AGENT_RESOURCES="cpus=$cpus"
  [ "$memory" -eq 0 ] || DROVER_AGENT_RESOURCES="$DROVER_AGENT_RESOURCES,mem=\${memory}Mi"
  export DROVER_AGENT_RESOURCES
fi
${agentCommand || INSTALL}
`.trimStart();
}

/** All of it: what a template needs to write once. `environment` may still be a mark for it. */
export function startText(program: AgentProgram, environment: string): string {
  const { workers } = program.batch;
  const cpus = '${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}';
  const everywhere = `srun --nodes=${workers} --ntasks=${workers} ${cpus} --kill-on-bad-exit=0 `;
  return `${environment}
drover_agent=${quote(agentText(program))}
${workers > 1 ? everywhere : ''}/bin/sh -c "$drover_agent" &
drover_pid=$!
# Slurm's word that the time is nearly over; Drover knows it, and the script must outlive it.
trap 'echo "drover: Slurm ends this job soon"' USR1
# At the end all get TERM. With the script the rest would be killed at once: agents come first.
trap : TERM
wait "$drover_pid"
drover_code=$?
while kill -0 "$drover_pid" 2>/dev/null; do
  wait "$drover_pid"
  drover_code=$?
done
exit "$drover_code"
`;
}
