/** What a swap needs beyond writing to the target, and would miss only after everything has been uploaded. */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { PreflightProblem } from '../port.ts';
import { quoteName, quoteQualified } from './identifier.ts';
import { isAccepted, lossesOf } from './losses.ts';
import type { Marker } from './marker.ts';
import type { PostgresOptions } from './options.ts';
import type { SwapTarget } from './side-table.ts';

const RIGHTS = `
  SELECT current_user::text AS role,
         pg_catalog.has_schema_privilege(n.oid, 'CREATE') AS creates,
         pg_catalog.pg_has_role(c.relowner, 'USAGE') AS owns
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = $1 AND c.relname = $2`;

export async function swapProblems(
  client: PoolClient,
  target: SwapTarget,
  marker: Marker,
  { swap, accept_losses }: PostgresOptions,
): Promise<readonly PreflightProblem[]> {
  const { name, table } = target;
  const { rows } = await client.query(RIGHTS, [name.schema, name.name]);
  const found = z.object({ role: z.string(), creates: z.boolean(), owns: z.boolean() }).parse(rows[0]);
  const role = quoteName(found.role);
  const problems: PreflightProblem[] = [];
  if (!found.creates) problems.push(barred(`GRANT CREATE ON SCHEMA ${quoteName(name.schema)} TO ${role};`));
  const state = await marker.look(client);
  if (state === 'barred' || (state === 'missing' && !(await mayCreate(client, marker)))) {
    problems.push(noMarker(marker, role, state));
  }
  if (swap !== 'rename') return problems;
  if (!found.owns) problems.push(notOwned(quoteQualified(name), role));
  if (table.kind !== 'r') problems.push(PARTITIONED);
  const lost = (await lossesOf(client, name)).filter((loss) => !isAccepted(loss, accept_losses));
  for (const kind of new Set(lost.map((loss) => loss.kind))) {
    const names = lost.filter((loss) => loss.kind === kind).map((loss) => loss.name);
    problems.push({
      code: `swap-loses-${kind}`,
      message: `A rename would lose ${kind}: ${names.join(', ')}.`,
      remedy:
        kind === 'inheritance' || kind === 'row-type'
          ? 'Use `swap: replace`, which keeps the table.'
          : `Use \`swap: replace\`, which keeps the table, or write accept_losses: [${kind}].`,
    });
  }
  return problems;
}

async function mayCreate(client: PoolClient, marker: Marker): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT pg_catalog.has_schema_privilege(oid, 'CREATE') AS creates FROM pg_catalog.pg_namespace WHERE nspname = $1`,
    [marker.table.schema],
  );
  return rows[0]?.creates === true;
}

function barred(remedy: string): PreflightProblem {
  const message =
    'The role may not create a table beside the target, where a run’s uploads wait for its finish.';
  return { code: 'privilege-create', message, remedy };
}

function noMarker(marker: Marker, role: string, state: 'barred' | 'missing'): PreflightProblem {
  const grant = `${marker.grant(role)};`;
  return state === 'barred'
    ? { code: 'privilege-marker', message: 'The role may not use the table of swaps.', remedy: grant }
    : {
        code: 'marker-missing',
        message: 'There is no table of swaps, and the role may not create it.',
        remedy: `${marker.ddl}; ${grant}`,
      };
}

function notOwned(table: string, role: string): PreflightProblem {
  return {
    code: 'swap-not-owner',
    message: `Only its owner can put another table into the place of ${table}.`,
    remedy: `ALTER TABLE ${table} OWNER TO ${role}; or use \`swap: replace\`.`,
  };
}

const PARTITIONED: PreflightProblem = {
  code: 'swap-partitioned',
  message: 'A partitioned table cannot be swapped by renaming.',
  remedy: 'Use `swap: replace`.',
};
