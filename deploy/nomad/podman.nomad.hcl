# A gateway and the workers of one model on Nomad (1.8 or later) from Shoal's image, by nomad-driver-podman: the jobs of gateway.nomad.hcl
# and worker.nomad.hcl in one, found by Nomad's own services. docs/nomad.md has the commands.
variable "image" {
  type    = string
  default = "localhost/shoal:latest"
}

variable "model" {
  type    = string
  default = "home-chat-s"
}

variable "count" {
  type    = number
  default = 2
}

locals {
  at = "{{range nomadService \"shoal-${var.model}\"}}, {model: ${var.model}, address: \"{{.Address}}:{{.Port}}\"}{{end}}"
}

job "shoal" {
  datacenters = ["*"]
  namespace   = "shoal"
  type        = "service"

  update {
    max_parallel     = 1
    min_healthy_time = "5s"
    healthy_deadline = "5m"
    auto_revert      = true
  }

  group "gateway" {
    network {
      port "http" {
        static = 8080
      }
    }

    service {
      name     = "shoal"
      port     = "http"
      provider = "nomad"

      check {
        type     = "http"
        path     = "/healthz"
        interval = "5s"
        timeout  = "2s"
      }
    }

    task "gateway" {
      driver       = "podman"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        image           = var.image
        args            = ["serve", "--config", "/local/shoal.yaml", "--listen", ":8080", "--json-log"]
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        tmpfs           = ["/tmp"]
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
          models: [{name: ${var.model}, external: true}]
          discovery:
            tls: {cert: /secrets/tls.crt, key: /secrets/tls.key, ca: /secrets/ca.crt}
            workers: [{model: ${var.model}}${local.at}]
        YAML
      }

      template {
        destination = "secrets/ca.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal/gateway\"}}{{.ca}}{{end}}"
      }

      template {
        destination = "secrets/tls.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal/gateway\"}}{{.crt}}{{end}}"
      }

      # The image's user is not root.
      template {
        destination = "secrets/tls.key"
        change_mode = "noop"
        perms       = "0400"
        uid         = 65532
        gid         = 65532
        data        = "{{with nomadVar \"nomad/jobs/shoal/gateway\"}}{{.key}}{{end}}"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }
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
      provider = "nomad"

      check {
        type     = "tcp"
        interval = "5s"
        timeout  = "2s"
      }
    }

    task "worker" {
      driver       = "podman"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        image = var.image
        args = [
          "worker", "--name", var.model, "--model", "/usr/share/shoal/models/${var.model}.gguf", "--threads", "2",
          "--address", ":${NOMAD_PORT_grpc}", "--tls-cert", "/secrets/tls.crt", "--tls-key", "/secrets/tls.key",
          "--tls-ca", "/secrets/ca.crt", "--tls-client", "shoal-gateway", "--log-level", "info", "--json-log",
        ]
        network_mode    = "host"
        readonly_rootfs = true
        cap_drop        = ["all"]
        tmpfs           = ["/tmp"]
      }

      template {
        destination = "secrets/ca.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal/worker\"}}{{.ca}}{{end}}"
      }

      template {
        destination = "secrets/tls.crt"
        change_mode = "noop"
        data        = "{{with nomadVar \"nomad/jobs/shoal/worker\"}}{{.crt}}{{end}}"
      }

      template {
        destination = "secrets/tls.key"
        change_mode = "noop"
        perms       = "0400"
        uid         = 65532
        gid         = 65532
        data        = "{{with nomadVar \"nomad/jobs/shoal/worker\"}}{{.key}}{{end}}"
      }

      resources {
        cores  = 2
        memory = 512
      }
    }
  }
}
