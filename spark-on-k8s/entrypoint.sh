#!/bin/bash
# What Spark on Kubernetes starts in its pods: `driver …` and `executor`, told by SPARK_* variables; anything else is run
# as it stands, so that the image has Python, spark-submit and the jobs at hand.
set -eu

driver() {
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
        --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" "$@"
}

executor() {
    local classpath="${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*" options=() name
    [ -z "${HADOOP_CONF_DIR:-}" ] || classpath="$HADOOP_CONF_DIR:$classpath"
    [ -z "${SPARK_CONF_DIR:-}" ] || classpath="$SPARK_CONF_DIR:$classpath"
    # SPARK_JAVA_OPT_0, _1, …: one option each, which may hold spaces.
    for name in $(compgen -A variable SPARK_JAVA_OPT_ | sort -t _ -k 4n); do options+=("${!name}"); done
    exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classpath" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
}

case ${1:-} in
    driver | executor)
        role=$1
        shift
        "$role" "$@"
        ;;
    *) exec "$@" ;;
esac
