"""Build tools of Java: how Maven and Gradle are run offline, and the reports that they write."""
