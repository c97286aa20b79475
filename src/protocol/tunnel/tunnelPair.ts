/** For tests: both ends of a tunnel on a wire and a clock that move only when told. */
import type { Clock } from '../../lib/clock.ts';
import { TUNNEL_LIMITS, type TunnelLimits } from './limits.ts';
import type { MessageSocket, SocketEvents } from './messageSocket.ts';
import type { TunnelStream } from './stream.ts';
import { Tunnel } from './tunnel.ts';

/** Time that moves only when told. */
function manualClock(): Clock & { advance(ms: number): void } {
  let now = 0;
  const timers = new Set<{ at: number; run(): void }>();
  return {
    now: () => now,
    bootMs: () => now,
    soon: (run) => void setImmediate(run),
    setTimer(delayMs, run) {
      const timer = { at: now + delayMs, run };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = [...timers].filter((timer) => timer.at <= until);
        const first = due.toSorted((a, b) => a.at - b.at)[0];
        if (first === undefined) break;
        now = first.at;
        timers.delete(first);
        first.run();
      }
      now = until;
    },
  };
}

interface Wire extends MessageSocket {
  /** Messages sent and not yet delivered. */
  queued: { bytes: Uint8Array; sent(): void }[];
  events?: SocketEvents;
  pings: number;
  closedWith?: string;
}

function wire(): Wire {
  return {
    queued: [],
    pings: 0,
    send(bytes, sent) {
      this.queued.push({ bytes, sent });
    },
    ping() {
      this.pings++;
    },
    close(_code, reason) {
      this.closedWith = reason;
      this.events?.close(reason);
    },
    terminate() {
      this.closedWith ??= 'terminated';
    },
    listen(events) {
      this.events = events;
    },
  };
}

function deliver(from: Wire, to: Wire): boolean {
  const next = from.queued.shift();
  if (next === undefined) return false;
  to.events?.message(next.bytes);
  next.sent();
  return true;
}

/** A gateway and an agent end joined by wires that deliver only when told. */
export function pair(options: { limits?: Partial<TunnelLimits> } = {}) {
  const limits = { ...TUNNEL_LIMITS, ...options.limits };
  const clock = manualClock();
  const accepted: TunnelStream[] = [];
  const [gatewayWire, agentWire] = [wire(), wire()];
  const onStream = (stream: TunnelStream): void => void accepted.push(stream);
  const gateway = new Tunnel({ socket: gatewayWire, side: 'gateway', clock, onStream, limits });
  const agent = new Tunnel({ socket: agentWire, side: 'agent', clock, onStream, limits });
  return {
    gateway,
    agent,
    gatewayWire,
    agentWire,
    clock,
    accepted,
    toAgent: () => deliver(gatewayWire, agentWire),
    toGateway: () => deliver(agentWire, gatewayWire),
    /** Everything on the wires and every waiting reader, until nothing moves. */
    async settle() {
      for (let quiet = 0; quiet < 3;) {
        const moved = [deliver(gatewayWire, agentWire), deliver(agentWire, gatewayWire)];
        await new Promise((resolve) => setImmediate(resolve));
        quiet = moved.includes(true) ? 0 : quiet + 1;
      }
    },
  };
}
