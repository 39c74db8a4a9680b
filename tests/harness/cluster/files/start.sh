#!/bin/bash
# Runs inside a node, as its process 1: the node's programs, each started again when it ends.
set -e
. /k8s/etc/settings
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/k8s/bin
pki=/k8s/pki
echo "$NODE_NAME" >/etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "$NODE_ADDRESS" "$NODE_NAME" >/etc/hosts
printf 'nameserver %s\n' "$DNS" >/etc/resolv.conf

keep() ( # name, command …
    name=$1
    shift
    while :; do
        "$@" >>"/var/log/k8s/$name.log" 2>&1 || true
        echo "== $name ended; starting it again" >>"/var/log/k8s/$name.log"
        sleep 0.5
    done
)

keep containerd containerd &
if [ "$CONTROL_PLANE" = 1 ]; then
    # What etcd holds need not outlive the machine: no waiting for its disk.
    keep etcd etcd --data-dir /var/lib/etcd --unsafe-no-fsync --log-level warn &
    keep kube-apiserver kube-apiserver \
        --etcd-servers=http://127.0.0.1:2379 \
        --advertise-address="$NODE_ADDRESS" \
        --service-cluster-ip-range="$SERVICES" \
        --tls-cert-file=$pki/apiserver.crt --tls-private-key-file=$pki/apiserver.key \
        --client-ca-file=$pki/ca.crt \
        --service-account-issuer=https://kubernetes.default.svc.cluster.local \
        --service-account-key-file=$pki/service-accounts.pub --service-account-signing-key-file=$pki/service-accounts.key \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
        --kubelet-client-certificate=$pki/apiserver-to-kubelet.crt --kubelet-client-key=$pki/apiserver-to-kubelet.key \
        --kubelet-certificate-authority=$pki/ca.crt --kubelet-preferred-address-types=InternalIP \
        --allow-privileged=true &
fi

until kubectl --kubeconfig "$pki/$NODE_NAME.conf" get --raw /readyz >/dev/null 2>&1; do sleep 0.3; done

if [ "$CONTROL_PLANE" = 1 ]; then
    keep kube-controller-manager kube-controller-manager \
        --kubeconfig=$pki/controller-manager.conf \
        --authentication-kubeconfig=$pki/controller-manager.conf --authorization-kubeconfig=$pki/controller-manager.conf \
        --service-account-private-key-file=$pki/service-accounts.key --root-ca-file=$pki/ca.crt \
        --cluster-signing-cert-file=$pki/ca.crt --cluster-signing-key-file=$pki/ca.key \
        --use-service-account-credentials --leader-elect=false \
        --kube-api-qps=200 --kube-api-burst=400 \
        --node-monitor-period=2s --node-monitor-grace-period=16s &
    keep kube-scheduler kube-scheduler \
        --kubeconfig=$pki/scheduler.conf \
        --authentication-kubeconfig=$pki/scheduler.conf --authorization-kubeconfig=$pki/scheduler.conf \
        --leader-elect=false --kube-api-qps=200 --kube-api-burst=400 &
fi
until [ -e /k8s/etc/images-are-there ]; do sleep 0.1; done
keep kubelet kubelet \
    --config=/k8s/etc/kubelet.yaml --kubeconfig="$pki/$NODE_NAME.conf" \
    --hostname-override="$NODE_NAME" --node-ip="$NODE_ADDRESS" \
    --node-labels="topology.kubernetes.io/zone=zone-$NODE_NAME" &
# The limits of connection tracking are the machine's own and stay as they are.
keep kube-proxy kube-proxy \
    --kubeconfig=$pki/proxy.conf --hostname-override="$NODE_NAME" \
    --proxy-mode=nftables --cluster-cidr="$PODS" \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s &
wait
