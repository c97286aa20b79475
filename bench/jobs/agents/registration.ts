/** What a simulated agent says of itself when it joins. */
import { AGENT_VERSION, type JoinRequest } from '../../../src/protocol/agent.ts';

export function registration(name: string, bootId: string, cpuMillis: number): JoinRequest {
  return {
    name,
    machine: name,
    bootId,
    address: '127.0.0.1',
    network: 'bench',
    agentVersion: AGENT_VERSION,
    capabilities: [],
    attributes: {},
    resources: { cpuMillis, memoryBytes: 2 ** 40, devices: [], portRange: [20_000, 29_999] },
  };
}
