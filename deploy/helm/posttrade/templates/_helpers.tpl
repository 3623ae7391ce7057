{{- define "posttrade.members" -}}
{{- $n := .Release.Name -}}
{{- range $i := until 3 -}}
{{- $m := add1 $i -}}
{{- if $i }},{{ end }}{{ $m }}={{ $n }}-{{ $m }}.{{ $n }}:18120@{{ $n }}-{{ $m }}.{{ $n }}:18110
{{- end -}}
{{- end -}}

{{- define "posttrade.labels" -}}
app.kubernetes.io/name: posttrade
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "posttrade.selector" -}}
app.kubernetes.io/name: posttrade
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
