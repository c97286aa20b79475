/** Where all members of a gang fit together: on one network, in one locality. */
import type { Candidates, Tiers } from './candidates.ts';
import type { Shape } from './shape.ts';

export interface Locality {
  name: string;
  tiers: Tiers;
}

interface Offer {
  locality: Locality;
  /** Bytes of the inputs that need not be fetched to it. */
  held: number;
  /** Of the members that would go there. */
  preference: number;
  priceMicros: number;
  /** How many members would fit. */
  room: number;
}

/**
 * The best locality with room for all. Members are alike, so if there is room for as many, then
 * taking the best spot again and again finds it.
 */
export function bestLocality(
  candidates: Candidates,
  size: number,
  held: ReadonlyMap<string, number>,
): Locality | null {
  const spread = candidates.shape.request.placement.arrangement === 'spread';
  let best: Offer | null = null;
  for (const [name, tiers] of candidates.localities()) {
    const offer = offerOf({ name, tiers }, held.get(name) ?? 0, candidates.shape, size);
    if (offer.room >= size && (!best || better(offer, best, spread))) best = offer;
  }
  return best?.locality ?? null;
}

function offerOf(locality: Locality, held: number, shape: Shape, size: number): Offer {
  const offer: Offer = { locality, held, preference: 0, priceMicros: 0, room: 0 };
  for (const { preference, priceMicros, states } of locality.tiers.alive()) {
    const before = Math.min(offer.room, size);
    for (const state of states) offer.room += shape.room(state) * state.members.length;
    const members = Math.min(offer.room, size) - before;
    offer.preference += members * preference;
    offer.priceMicros += members * priceMicros;
  }
  return offer;
}

/** Packing takes the locality that has the least room, so that the next large gang finds one. */
function better(a: Offer, b: Offer, spread: boolean): boolean {
  if (a.preference !== b.preference) return a.preference > b.preference;
  if (a.priceMicros !== b.priceMicros) return a.priceMicros < b.priceMicros;
  if (a.held !== b.held) return a.held > b.held;
  return spread ? a.room > b.room : a.room < b.room;
}
