{{/* Everything is called after the release. */}}
{{- define "pq.name" -}}
{{ printf "%s-%s" (.root.Release.Name | trunc 50 | trimSuffix "-") .component }}
{{- end }}

{{/* By what the pods of a component are found; for ever, as a Deployment's selector cannot change. */}}
{{- define "pq.selector" -}}
app.kubernetes.io/name: partitionedqueue
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "pq.labels" -}}
{{ include "pq.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* registry/repository:tag@digest of one of broker, operator, gateway. */}}
{{- define "pq.image" -}}
{{- $image := (get .root.Values .component).image }}
{{- if eq $image.tag "latest" }}
{{- fail (printf "%s.image.tag is latest, of which nobody can say what it is: give a version, or a digest" .component) }}
{{- end }}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* What Pod Security's level `restricted` asks of a pod, and of a container. */}}
{{- define "pq.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "pq.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where the pods of a component go. */}}
{{- define "pq.scheduling" -}}
{{- $values := get .root.Values .component }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- with $values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "pq.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}

{{/* Binds the ClusterRole of a component to its service account: everywhere, or in the namespaces that are watched. */}}
{{- define "pq.bindings" -}}
{{- $ := . }}
{{- $name := include "pq.name" . }}
{{- range .root.Values.watchNamespaces | default (list "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (ne . "") }}
metadata:
  name: {{ $name }}
  {{- if . }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "pq.labels" $ | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* The Secret that says who may come in. */}}
{{- define "pq.policies" -}}
{{- .Values.gateway.policies.existingSecret | default (include "pq.name" (dict "root" . "component" "gateway-policies")) }}
{{- end }}
