{{- define "contextd.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "contextd.podMetadata" -}}
labels:
  {{- include "contextd.labels" . | nindent 2 }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Whether the daemon has a volume that outlives the pod; empty if not. */}}
{{- define "contextd.persistent" -}}
{{- if and .Values.persistence.enabled (not .Values.postgres.enabled) }}true{{ end }}
{{- end }}

{{- define "contextd.podSettings" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.pod }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What a volume that is to outlive the pod asks for. Takes (list root size). */}}
{{- define "contextd.claim" -}}
{{- $root := index . 0 -}}
accessModes:
  - ReadWriteOnce
{{- with $root.Values.persistence.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ index . 1 }}
{{- end }}

{{- /* A volume of the pod's own, or of a claim, which a StatefulSet makes itself. Takes (list root volume size claim). */}}
{{- define "contextd.storage" -}}
{{- $root := index . 0 -}}
{{- if not $root.Values.persistence.enabled }}
- name: {{ index . 1 }}
  emptyDir:
    sizeLimit: {{ index . 2 }}
{{- else if eq $root.Values.mode "sidecar" }}
- name: {{ index . 1 }}
  persistentVolumeClaim:
    claimName: {{ index . 3 }}
{{- end }}
{{- end }}

{{- define "contextd.volumes" -}}
{{- $name := include "contextd.name" . -}}
{{- if eq .Values.mode "sidecar" }}
- name: socket
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end }}
{{- if .Values.postgres.enabled }}
- name: postgres
  secret:
    secretName: {{ .Values.postgres.secretName | default (print $name "-postgres") }}
    defaultMode: 0440
{{- else }}
{{- include "contextd.storage" (list . "data" .Values.persistence.size $name) }}
{{- end }}
{{- if eq .Values.mode "standalone" }}
- name: tls
  secret:
    secretName: {{ .Values.auth.tlsSecretName | default (print $name "-tls") }}
    defaultMode: 0440
{{- if .Values.auth.tokens }}
- name: tokens
  secret:
    secretName: {{ .Values.auth.tokensSecretName | default (print $name "-tokens") }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- if .Values.encryption.enabled }}
- name: encryption
  secret:
    secretName: {{ .Values.encryption.secretName | default (print $name "-key") }}
    defaultMode: 0440
{{- include "contextd.storage" (list . "keys" .Values.encryption.keysSize (print $name "-keys")) }}
{{- end }}
{{- if .Values.config }}
- name: config
  configMap:
    name: {{ include "contextd.configName" . }}
{{- end }}
{{- end }}
