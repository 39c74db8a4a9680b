#!/bin/bash
# The first process of a node: makes the node's file system its own, then runs the node.
# Environment: NODE (its folder), ROOT (a Debian that nobody writes to), PROGRAMS, PKI, IMAGES, NODE_NAME.
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$NODE/changes,workdir=$NODE/work" "$NODE/root"
cd "$NODE/root"
mkdir -p k8s/bin k8s/pki k8s/etc images oldroot var/lib/{containerd,kubelet,etcd,volumes} var/log/k8s etc/cni/net.d etc/containerd
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount --bind "$PROGRAMS" k8s/bin
mount --bind "$PKI" k8s/pki
mount --bind "$NODE/etc" k8s/etc
mount --bind -o ro "$IMAGES" images
mount --bind "$NODE/logs" var/log/k8s
for state in containerd kubelet etcd volumes; do mount --bind "$NODE/$state" "var/lib/$state"; done
cp k8s/etc/pod-network.conflist etc/cni/net.d/10-pod-network.conflist
cp k8s/etc/containerd.toml etc/containerd/config.toml
hostname "$NODE_NAME"
pivot_root . oldroot
cd /
umount -l /oldroot
mount --make-rshared / # volumes that kubelet mounts are seen by containerd
exec /bin/bash /k8s/etc/start.sh
