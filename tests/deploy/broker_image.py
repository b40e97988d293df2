"""What stands in for the brokers' image: makes settings of KAFKA_* variables, and runs Kafka.

It runs inside a container of the stand-in base, with Java and Kafka's jars mounted. Its arguments
are the jars' folder and Java's command. Like Confluent's images it takes KAFKA_NODE_ID for node.id.
"""

import os
import subprocess
import sys

jars, java = sys.argv[1:]
settings = {
    name.removeprefix("KAFKA_").lower().replace("_", "."): value
    for name, value in os.environ.items()
    if name.startswith("KAFKA_")
}
settings["log.dirs"] = "/tmp/kafka"
file = "/tmp/server.properties"
with open(file, "w") as properties:
    properties.writelines(f"{key}={value}\n" for key, value in settings.items())
command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
tool = [*command, "kafka.tools.StorageTool", "format", "-t", os.environ["CLUSTER_ID"], "-c", file]
subprocess.run([*tool, "--ignore-formatted"], check=True)
os.execv(java, [*command, "kafka.Kafka", file])
