/** The page's only style sheet. Colours come in pairs, for light and for dark; every pair of text and ground is readable. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --text: #1b1f24; --dim: #59636e; --line: #c4ccd4; --panel: #f5f7f9;
  --bad: #b3261e; --warn: #8a5a00; --good: #1a6b34;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14181c; --text: #e6e9ec; --dim: #a0a9b2; --line: #48525c; --panel: #1d2329;
    --bad: #ff8a80; --warn: #e8b44a; --good: #6fcf8e;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem }
h1 { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 b { text-transform: uppercase; letter-spacing: .03em }
h2 small { float: right; font-weight: normal; color: var(--dim) }
code, svg text, table.rows { font-family: ui-monospace, 'DejaVu Sans Mono', monospace }
svg text { font-size: 13px; white-space: pre }
p { margin: .35rem 0; overflow-wrap: anywhere }
.verdict { font-size: 1.5rem; font-weight: 700; margin: .5rem 0 1rem }
.convicted, .convicts h2 b { color: var(--bad) }
.survives { color: var(--good) }
.inconclusive, .warns h2 b { color: var(--warn) }
.dim, dt, figcaption { color: var(--dim) }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .2rem 1rem; margin: 0 0 1.5rem }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0 }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 1rem; margin: 0 0 1rem }
.convicts { border-left: 4px solid var(--bad) }
.warns { border-left: 4px solid var(--warn) }
section.map { border-left-width: 1px }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top }
th { color: var(--dim); font-weight: normal; border-bottom: 1px solid var(--line) }
table.rows th, table.rows td { white-space: pre }
figure { margin: 0 0 1rem }
svg { display: block; max-width: none }
svg text { fill: var(--text) }
svg text.dim { fill: var(--dim) }
svg line.time { stroke: var(--line); stroke-width: 2 }
svg circle { stroke: var(--dim); stroke-width: 2 }
svg circle.done { fill: var(--text); stroke: var(--text) }
svg circle.undone { fill: var(--panel) }
svg .cut line { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 5 }
svg text.cut { fill: var(--bad) }
svg circle.equal { fill: var(--panel); stroke: var(--good) }
svg circle.convicts { fill: var(--bad); stroke: var(--bad) }
svg circle.warns { fill: var(--warn); stroke: var(--warn) }
svg circle.unmet { fill: none; stroke-dasharray: 3 3 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: 0; padding: 0; font-size: .9rem }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: 50%; border: 2px solid var(--dim); margin-right: .4rem }
.key.equal { border-color: var(--good) }
.key.convicts { background: var(--bad); border-color: var(--bad) }
.key.warns { background: var(--warn); border-color: var(--warn) }
.key.unmet { border-style: dashed }
summary { cursor: pointer }
`
