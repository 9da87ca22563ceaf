# Gateways of Shoal on Nomad (1.8 or later): clients ask them, and they find the workers of worker.nomad.hcl. docs/nomad.md has the
# commands.
variable "models" {
  type        = list(string)
  default     = ["home-intent", "home-chat-s"]
  description = "models that workers of these names serve"
}

variable "discovery" {
  type        = string
  default     = "nomad"
  description = "nomad: Nomad's own services; consul: Consul's DNS"
}

variable "driver" {
  type        = string
  default     = "exec"
  description = "exec, or raw_exec where a client is not root"
}

variable "count" {
  type    = number
  default = 2
}

variable "consul_dns" {
  type    = string
  default = "127.0.0.1:8600"
}

locals {
  externals = join(", ", [for m in var.models : "{name: ${m}, external: true}"])

  # Where workers come and go, Nomad writes the list anew and sends SIGHUP: nothing else is disturbed.
  workers = join(", ", [for m in var.models :
    "{model: ${m}}{{range nomadService \"shoal-${m}\"}}, {model: ${m}, address: \"{{.Address}}:{{.Port}}\"}{{end}}"
  ])

  names     = join(", ", [for m in var.models : "{model: ${m}, name: _shoal-${m}._tcp.service.consul}"])
  discovery = var.discovery == "consul" ? "dns_server: ${var.consul_dns}, dns: [${local.names}]" : "workers: [${local.workers}]"
}

job "shoal-gateway" {
  datacenters = ["*"]
  namespace   = "shoal"
  type        = "service"

  update {
    max_parallel     = 1
    min_healthy_time = "5s"
    healthy_deadline = "2m"
    auto_revert      = true
  }

  group "gateway" {
    count = var.count

    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    network {
      port "http" {
        static = 8080
      }
    }

    service {
      name     = "shoal"
      port     = "http"
      provider = var.discovery

      check {
        type     = "http"
        path     = "/healthz"
        interval = "5s"
        timeout  = "2s"
      }
    }

    restart {
      attempts = 10
      interval = "10m"
      delay    = "2s"
      mode     = "delay"
    }

    task "gateway" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/usr/local/bin/shoal"
        args    = ["serve", "--config", "${NOMAD_TASK_DIR}/shoal.yaml", "--listen", ":${NOMAD_PORT_http}", "--json-log"]
      }

      env {
        SHOAL_STATE = "${NOMAD_ALLOC_DIR}/data/shoal"
      }

      template {
        destination   = "local/shoal.yaml"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        data          = <<-YAML
          drain_grace_ms: 5000
          drain_ms: 20000
          failover_wait_ms: 120000
          models: [${local.externals}]
          discovery:
            {tls: {cert: ../secrets/tls.crt, key: ../secrets/tls.key, ca: ../secrets/ca.crt}, ${local.discovery}}
        YAML
      }

      # Shoal reads files that change by itself.
      template {
        destination = "secrets/ca.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal-gateway\"}}{{.ca}}{{end}}"
      }

      template {
        destination = "secrets/tls.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal-gateway\"}}{{.crt}}{{end}}"
      }

      template {
        destination = "secrets/tls.key"
        change_mode = "noop"
        perms       = "0400"
        data        = "{{with nomadVar \"nomad/jobs/shoal-gateway\"}}{{.key}}{{end}}"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
  }
}
