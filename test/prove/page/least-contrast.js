// The least contrast between a text of the page and the ground it stands on, as WCAG counts it. Runs in the page.
;(() => {
  const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number)
  const luminance = (color) => {
    const [r = 0, g = 0, b = 0] = channels(color).map((value) => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const groundOf = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor
      if (channels(ground)[3] !== 0) return ground
    }
    return 'rgb(255, 255, 255)'
  }
  let least = { ratio: 21, text: '' }
  for (const element of document.querySelectorAll('body *')) {
    const isText = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.textContent.trim() !== '',
    )
    if (!isText || element.closest('title') !== null) continue
    const style = getComputedStyle(element)
    const color = element instanceof SVGElement ? style.fill : style.color
    const [one, other] = [luminance(color), luminance(groundOf(element))]
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
    if (ratio < least.ratio) least = { ratio, text: element.textContent }
  }
  return least
})()
