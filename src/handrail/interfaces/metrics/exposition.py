"""Writes figures and gauges in the formats that Prometheus reads. The only module that knows its library.

Imported by `serve` and `worker --metrics` alone: it takes 40 ms."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from handrail.domain.metrics.catalog import METRICS, Metric, MetricKind
from handrail.domain.metrics.figures import Figures
from handrail.interfaces.metrics.store_gauges import Gauges, Values

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


def exposed(figures: Figures, gauges: Gauges, *, accept: str) -> tuple[bytes, str]:
    """Everything as text, and its media type, which is the best of those that are accepted."""
    registry = CollectorRegistry()
    registry.register(_Collector(figures, gauges))
    ProcessCollector(registry=registry)
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type


class _Collector(Collector):
    """Figures and gauges as the library's families, in the order of the catalogue."""

    def __init__(self, figures: Figures, gauges: Gauges) -> None:
        self._figures, self._gauges = figures, gauges

    def collect(self) -> Iterator[Family]:
        """Every metric of the catalogue, also those without a value: who asks sees that it is there."""
        make = {
            MetricKind.COUNTER: self._counter,
            MetricKind.HISTOGRAM: self._histogram,
            MetricKind.GAUGE: self._gauge,
        }
        for metric in METRICS:
            yield make[metric.kind](metric)

    def _counter(self, metric: Metric) -> Family:
        family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        # Copied: the thread of the store may add to it meanwhile.
        counted: Values = dict(self._figures.counts[metric.name]) or ({} if metric.labels else {(): 0})
        values = self._gauges.get(metric, counted)  # what others count is read when it is asked for, too
        for labels, count in values.items():
            family.add_metric(labels, count)
        return family

    def _histogram(self, metric: Metric) -> Family:
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, one in dict(self._figures.histograms[metric.name]).items():
            family.add_metric(labels, buckets=list(one.cumulative()), sum_value=one.total)
        return family

    def _gauge(self, metric: Metric) -> Family:
        family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, value in self._gauges.get(metric, {}).items():
            family.add_metric(labels, value)
        return family
