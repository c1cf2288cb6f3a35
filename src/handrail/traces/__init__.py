"""Who sees the traces: spans, sent to a collector by the OpenTelemetry SDK. Imported only when an address is set."""
