# Workers of one model on Nomad (1.8 or later), a job for each model. docs/nomad.md has the commands.
variable "model" {
  type        = string
  description = "the name that clients use"
}

variable "path" {
  type        = string
  default     = ""
  description = "its file or folder, on every client; else the one of this name that was installed with Shoal"
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
  default = 1
}

variable "max" {
  type        = number
  default     = 4
  description = "the most that `nomad job scale` and the Nomad Autoscaler start"
}

variable "threads" {
  type    = number
  default = 2
}

variable "cores" {
  type        = number
  default     = 2
  description = "whole cores that Nomad gives to each worker"
}

variable "memory" {
  type        = number
  default     = 512
  description = "MiB: the file, its cache of keys and values, and some 30"
}

job "shoal-worker" {
  id          = "shoal-${var.model}"
  name        = "shoal-${var.model}"
  datacenters = ["*"]
  namespace   = "shoal"
  type        = "service"

  # A new worker is at work before an old one goes.
  update {
    max_parallel     = 1
    canary           = 1
    auto_promote     = true
    auto_revert      = true
    min_healthy_time = "5s"
    healthy_deadline = "5m"
  }

  group "worker" {
    count = var.count

    spread {
      attribute = "${node.unique.id}"
    }

    network {
      port "grpc" {}
    }

    service {
      name     = "shoal-${var.model}"
      port     = "grpc"
      provider = var.discovery

      check {
        type     = "tcp"
        interval = "5s"
        timeout  = "2s"
      }
    }

    # A node that is lost: its workers elsewhere at once.
    reschedule {
      delay          = "1s"
      delay_function = "exponential"
      max_delay      = "1m"
      unlimited      = true
    }

    restart {
      attempts = 3
      interval = "1m"
      delay    = "1s"
      mode     = "fail"
    }

    # Read by the Nomad Autoscaler with Prometheus; without these two the number changes by `nomad job scale` only.
    scaling {
      enabled = true
      min     = var.count
      max     = var.max

      policy {
        cooldown            = "30s"
        evaluation_interval = "10s"

        check "load" {
          source = "prometheus"
          query  = "max(shoal_model_running{model=\"${var.model}\"}) + max(shoal_model_queue{model=\"${var.model}\"})"

          strategy "target-value" {
            target = 4
          }
        }
      }
    }

    task "worker" {
      driver       = var.driver
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/usr/local/bin/shoal"
        args = [
          "worker", "--name", var.model,
          "--model", var.path != "" ? var.path : "/usr/local/share/shoal/models/${var.model}.gguf",
          "--threads", format("%d", var.threads), "--address", ":${NOMAD_PORT_grpc}",
          "--tls-cert", "${NOMAD_SECRETS_DIR}/tls.crt", "--tls-key", "${NOMAD_SECRETS_DIR}/tls.key",
          "--tls-ca", "${NOMAD_SECRETS_DIR}/ca.crt", "--tls-client", "shoal-gateway", "--log-level", "info", "--json-log",
        ]
      }

      # Shoal reads files that change by itself.
      template {
        destination = "secrets/ca.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal-${var.model}\"}}{{.ca}}{{end}}"
      }

      template {
        destination = "secrets/tls.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal-${var.model}\"}}{{.crt}}{{end}}"
      }

      template {
        destination = "secrets/tls.key"
        change_mode = "noop"
        perms       = "0400"
        data        = "{{with nomadVar \"nomad/jobs/shoal-${var.model}\"}}{{.key}}{{end}}"
      }

      resources {
        cores  = var.cores
        memory = var.memory
      }
    }
  }
}
