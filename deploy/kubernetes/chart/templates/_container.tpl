{{- /* Settings that the chart makes into flags, which would win over config. */}}
{{- define "contextd.owned" -}}
listen unix_socket tls_cert tls_key tls_client_ca auth_tokens store data_dir postgres_dsn postgres_dsn_file metrics_listen shutdown_timeout encryption_key_file encryption_keys_dir
{{- end }}

{{- define "contextd.name" -}}
{{ .Release.Name }}{{ if eq .Values.mode "sidecar" }}-contextd{{ end }}
{{- end }}

{{- /* The name changes with the content, so that pods are replaced. */}}
{{- define "contextd.configName" -}}
{{ include "contextd.name" . }}-config-{{ toYaml .Values.config | sha256sum | trunc 10 }}
{{- end }}

{{- define "contextd.secured" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end }}

{{- define "contextd.container" -}}
name: contextd
image: {{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.mode "sidecar" }}
restartPolicy: Always
{{- end }}
args:
  - serve
  {{- if eq .Values.mode "sidecar" }}
  - --unix-socket=/run/contextd/contextd.sock
  {{- else }}
  - --listen=:7171
  - --tls-cert=/etc/contextd/tls/tls.crt
  - --tls-key=/etc/contextd/tls/tls.key
  {{- if .Values.auth.clientCertificates }}
  - --tls-client-ca=/etc/contextd/tls/ca.crt
  {{- end }}
  {{- if .Values.auth.tokens }}
  - --auth-tokens=/etc/contextd/tokens/tokens.yaml
  {{- end }}
  {{- end }}
  {{- if .Values.postgres.enabled }}
  - --store=postgres
  - --postgres-dsn-file=/etc/contextd/postgres/dsn
  {{- else }}
  - --store=disk
  - --data-dir=/var/lib/contextd/store
  {{- end }}
  - --metrics-listen=:9464
  - --shutdown-timeout={{ .Values.shutdownTimeoutSeconds }}s
  {{- if not (hasKey .Values.config "import_memory") }}
  - --import-memory=128MiB
  {{- end }}
  {{- if not (hasKey .Values.config "max_session_events") }}
  - --max-session-events=200000
  {{- end }}
  {{- if not (hasKey .Values.config "log_format") }}
  - --log-format=json
  {{- end }}
  {{- if .Values.encryption.enabled }}
  - --encryption-key-file=/etc/contextd/encryption/store.key
  - --encryption-keys-dir=/var/lib/contextd-keys/keys
  {{- end }}
  {{- if .Values.config }}
  - --config=/etc/contextd/config/contextd.yaml
  {{- end }}
{{- with .Values.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if eq .Values.mode "standalone" }}
  - name: grpc
    containerPort: 7171
  {{- end }}
  - name: metrics
    containerPort: 9464
startupProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 1
  failureThreshold: 86400
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 5
  failureThreshold: 2
livenessProbe:
  httpGet:
    path: /livez
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
securityContext:
  {{- include "contextd.secured" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  {{- if eq .Values.mode "sidecar" }}
  - name: socket
    mountPath: /run/contextd
  {{- end }}
  {{- if .Values.postgres.enabled }}
  - name: postgres
    mountPath: /etc/contextd/postgres
    readOnly: true
  {{- else }}
  - name: data
    mountPath: /var/lib/contextd
  {{- end }}
  {{- if eq .Values.mode "standalone" }}
  - name: tls
    mountPath: /etc/contextd/tls
    readOnly: true
  {{- if .Values.auth.tokens }}
  - name: tokens
    mountPath: /etc/contextd/tokens
    readOnly: true
  {{- end }}
  {{- end }}
  {{- if .Values.encryption.enabled }}
  - name: encryption
    mountPath: /etc/contextd/encryption
    readOnly: true
  - name: keys
    mountPath: /var/lib/contextd-keys
  {{- end }}
  {{- if .Values.config }}
  - name: config
    mountPath: /etc/contextd/config
    readOnly: true
  {{- end }}
{{- end }}
