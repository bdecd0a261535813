/** Tables that nobody would design and everybody has: made in SQL, the same at every run. */

/** Texts that break naive code, as SQL; joined and repeated by the row's number. */
const SCRAPS = [
  `''`,
  `' '`,
  `E'\\t'`,
  `E'line\\r\\nline'`,
  `E'\\\\N'`,
  `E'\\\\'`,
  `E'\\\\u0000'`,
  `'NULL'`,
  `'null'`,
  `''''`,
  `'"'`,
  `'$$ $1 %s'`,
  `'{"a":[1,2'`,
  `E'\\x01\\x1b[0m\\x7f'`,
  `'😀'`,
  `'👩‍👩‍👧🏳️‍🌈'`,
  `E'e\\u0301\\u0327'`,
  `'é'`,
  `'العربية עברית'`,
  `U&'\\202E\\200B\\FEFF\\2028\\00A0'`,
  `'ẞıİﬁÅ'`,
  `'中文字'`,
  `U&'\\FFFF\\+10FFFF'`,
  `'O''Brien; drop table x;--'`,
];

/** A text that depends on the number expression `n` and on `salt`. */
export function messyText(n: string, salt: number): string {
  const pick = (step: number) =>
    `s[1 + mod(abs(hashint4((${n})::int # ${salt * 7919 + step * 104729})), ${SCRAPS.length})]`;
  return `${pick(1)} || ${pick(2)} || ${pick(3)}`;
}

/** Gives `s`, the scraps, to a query: `from … , ${SCRAPS_FROM}`. */
export const SCRAPS_FROM = `(select array[${SCRAPS.join(', ')}]) as scraps(s)`;

/** Columns whose names and types hurt; the key is the first two. */
export const COLUMNS: readonly (readonly [name: string, type: string])[] = [
  ['select', 'bigint'],
  ['a b', 'text'],
  ['ünï', 'numeric'],
  ['constructor', 'text'],
  ['toString', 'varchar(60)'],
  ['"quoted"', 'text[]'],
  ["it's", 'jsonb'],
  ['x.y', 'timestamptz'],
  ['$ref', 'timestamp'],
  ['UPPER', 'date'],
  ['upper', 'interval'],
  ['hasOwnProperty', 'uuid'],
  ['🙂', 'bytea'],
  ['f8', 'float8'],
  ['f4', 'real'],
  ['b', 'boolean'],
  ['c', 'char(9)'],
  ['m', 'money'],
  ['i', 'inet'],
  ['r', 'int4range'],
  ['rc', 'messy_pair'],
  ['e', 'messy_mood'],
  ['dom', 'messy_code'],
  ['nested', 'int[]'],
  ['t', 'time'],
];

export const TYPES = `
  create type messy_mood as enum ('ok', 'so so', 'a"b''c');
  create type messy_pair as (n numeric, t text);
  create domain messy_code as text check (value <> 'never');`;

export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export function createTable(name: string): string {
  const columns = COLUMNS.map(([column, type]) => `${quote(column)} ${type}`);
  return `create table ${name} (${columns.join(', ')}, primary key ("select", "a b"))`;
}

/** Values of all columns but the key, for the number expression `n`; another `salt` gives other values. */
function values(n: string, salt: number): readonly string[] {
  const r = `abs(hashint4((${n})::int # ${salt}))`;
  const orNull = (value: string, every: number) =>
    `case when mod(${r}, ${every}) = 0 then null else ${value} end`;
  return [
    orNull(`(${r}::numeric * 1234567890123456789012345678.901234567 * power(10::numeric, mod(${r}, 5)))`, 11),
    orNull(messyText(n, salt + 1), 13),
    orNull(`left(${messyText(n, salt + 2)}, 60)`, 5),
    orNull(`array[${messyText(n, salt + 3)}, null, 'NULL', '', ${messyText(n, salt + 4)}]`, 6),
    orNull(
      `jsonb_build_object('__proto__', ${r}, 'k' || mod(${r}, 3), jsonb_build_array(${messyText(n, salt + 5)}, null, 0.1, jsonb_build_object()), '', true)`,
      7,
    ),
    orNull(
      `timestamptz '0001-01-01 00:00:00 BC' + make_interval(days => mod(${r}, 4500000), secs => mod(${r}, 86399) + 0.123457)`,
      9,
    ),
    orNull(
      `timestamp '4000-01-01 BC' + make_interval(days => mod(${r}, 6000000)) + interval '0.000001 s'`,
      9,
    ),
    orNull(`date '4000-01-01 BC' + mod(${r}, 6000000)`, 8),
    orNull(
      `make_interval(months => mod(${r}, 99) - 50, days => mod(${r}, 77) - 30, secs => mod(${r}, 9999) / 1000.0 - 5)`,
      10,
    ),
    orNull(`md5(${r}::text)::uuid`, 12),
    orNull(`decode(md5(${r}::text) || '00ff0a5c', 'hex')`, 6),
    orNull(`${r} * 1.1e-300::float8`, 4),
    orNull(`(${r} / 7.0)::real`, 4),
    orNull(`mod(${r}, 2) = 1`, 3),
    orNull(`left('c' || ${r}, mod(${r}, 9))`, 5),
    orNull(`(mod(${r}, 2000000) - 1000000)::numeric::money`, 7),
    orNull(`inet '10.0.0.0/8' + mod(${r}, 16777216)`, 7),
    orNull(`int4range(mod(${r}, 100), mod(${r}, 100) + mod(${r}, 3), '[]')`, 8),
    orNull(`row(${r}, ${messyText(n, salt + 6)})::messy_pair`, 8),
    orNull(`(enum_range(null::messy_mood))[1 + mod(${r}, 3)]`, 8),
    orNull(`${messyText(n, salt + 7)}::messy_code`, 8),
    orNull(`array[[${r}, null], [mod(${r}, 7), -1]]`, 8),
    orNull(`time '00:00' + make_interval(secs => mod(${r}, 86399) + 0.000001)`, 8),
  ];
}

/** The key of a number: extremes of bigint, a text beside it that alone tells every third pair apart. */
function keyOf(n: string): readonly string[] {
  return [
    `case mod(${n}, 3) when 0 then -9223372036854775808 + (${n}) when 1 then 9223372036854775807 - (${n}) else 9007199254740993 end`,
    `case mod(${n}, 3) when 2 then 'Key' || (case when mod(${n}, 2) = 0 then 'A' else 'a' end) || ((${n}) / 6) || 'ß'
       else ${messyText(n, 0)} || 'k' end`,
  ];
}

/** Rows for the numbers from `from` to `to`. */
export function insertRows(table: string, from: number, to: number, salt: number): string {
  const all = [...keyOf('n'), ...values('n', salt)];
  return `insert into ${table} select ${all.join(', ')} from generate_series(${from}, ${to}) n, ${SCRAPS_FROM}`;
}

/** Other values in one row of `every`. */
export function updateRows(table: string, every: number, salt: number): string {
  const seed = `hashtext("select"::text || '/' || "a b")`;
  const set = COLUMNS.slice(2).map(([name]) => quote(name));
  return `update ${table} set (${set.join(', ')}) = (select ${values(seed, salt).join(', ')} from ${SCRAPS_FROM})
    where mod(abs(${seed} # ${salt}), ${every}) = 0`;
}

/** Gives the payloads of rows to one another, in pairs, through swapped keys. */
export function swapKeys(table: string, every: number): string {
  return `with chosen as (select "select" as k, "a b" as t, row_number() over (order by "select", "a b") as n from ${table}
      where mod(abs(hashtext("a b")), ${every}) = 0),
    pairs as (select a.k as ak, a.t as at, b.k as bk, b.t as bt from chosen a join chosen b on b.n = a.n + 1 where mod(a.n, 2) = 1)
    update ${table} x set "ünï" = y."ünï", "constructor" = y."constructor", "it's" = y."it's"
      from ${table} y, pairs p
     where (x."select", x."a b") = (p.ak, p.at) and (y."select", y."a b") = (p.bk, p.bt)
        or (x."select", x."a b") = (p.bk, p.bt) and (y."select", y."a b") = (p.ak, p.at)`;
}

export function deleteRows(table: string, every: number, salt: number): string {
  return `delete from ${table} where mod(abs(hashtext("a b" || "select"::text) # ${salt}), ${every}) = 0`;
}

/** One line per row in which every column's own text counts: two tables are equal when these sums are. */
export function fingerprint(table: string): string {
  const texts = COLUMNS.map(([name]) => `coalesce(${quote(name)}::text, '<null>')`);
  return `select count(*)::int as rows, sum(hashtextextended(jsonb_build_array(${texts.join(', ')})::text, 0))::text as sum from ${table}`;
}
