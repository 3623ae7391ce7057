/** A plot; the library is loaded with the first one. */
import { html, useEffect, useRef } from './dom.js';

/** @type {Promise<any>|undefined} */
let library;
function load() {
  library ||= new Promise((done, failed) => {
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    style.href = '/assets/vendor/uplot-1.6.32.css';
    const script = document.createElement('script');
    script.src = '/assets/vendor/uplot-1.6.32.js';
    script.onload = () => done(/** @type {any} */ (window).uPlot);
    script.onerror = () => { library = undefined; failed(new Error('the plot was not loaded')); };
    document.head.append(style, script);
  });
  return library;
}

const two = (n) => String(n).padStart(2, '0');
/** Times of an axis, of 24 hours. @param {any} _ @param {number[]} at in seconds */
const times = (_, at) => at.map((s) => { const d = new Date(s * 1000); return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`; });

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * @param {{label: string, data: any[], series: any[], options?: any, height?: number}} props series are
 * uPlot's, with stroke and fill as names of colours
 */
export function Plot({ label, data, series, options = {}, height = 220 }) {
  const box = useRef(null), plot = useRef(null), latest = useRef(data);
  latest.current = data; // the library may come later than newer data
  useEffect(() => {
    let gone = false;
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const make = () => load().then((uPlot) => {
      if (gone) return;
      plot.current?.destroy();
      const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') }, font: '12px system-ui' };
      const axes = (options.axes || [{}, {}]).map((a, i) => ({ ...axis, ...(i ? {} : { values: times, space: 80 }), ...a }));
      plot.current = new uPlot({
        width: box.current.clientWidth, height, cursor: { drag: { x: true, y: false } }, legend: { live: true }, ...options, axes,
        series: series.map((s, i) => ({ ...(i ? {} : { value: (_, v) => (v ? times(_, [v])[0] : '–') }), ...s, stroke: s.stroke && colour(s.stroke), fill: s.fill && colour(s.fill),
          points: s.points && { ...s.points, fill: colour(s.stroke), stroke: colour(s.stroke) } })),
      }, latest.current, box.current);
    }).catch(() => {});
    make();
    dark.addEventListener('change', make);
    const size = new ResizeObserver(() => plot.current?.setSize({ width: box.current.clientWidth, height }));
    size.observe(box.current);
    return () => {
      gone = true;
      dark.removeEventListener('change', make);
      size.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [JSON.stringify(series), label]);
  useEffect(() => { plot.current?.setData(data); }, [data]);
  return html`<div class="plot" ref=${box} role="img" aria-label=${label}></div>`;
}
