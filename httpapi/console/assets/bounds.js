/**
 * The value above which a tile of the overview is red: that of the alert of the same name in
 * deploy/prometheus/alerts.yml. A test compares them. That of a ring is a part of its slots.
 */
export const bounds = /** @type {Record<string, number>} */ ({
  'Answer latency': 1,
  'Durable latency': 0.5,
  'Input ring': 0.6,
  'Output ring': 0.8,
  Projection: 100000,
  Reconciliation: 100000,
  'Open breaks': 0,
  'Control feeds': 1000,
  Outbox: 1000,
  TCA: 1000000,
  Evidence: 60,
});
