"""What schemathesis is told about Drover: see fuzz.ts."""
