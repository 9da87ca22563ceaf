# The agents of shoal.nomad.hcl, on every client with meta { shoal = "agent" }:
#
#   nomad job run -var gateway=192.168.1.10 deploy/nomad/shoal-agents.nomad.hcl
#
# The token is used once; then its file may stay as it is, or go.
variable "gateway" {
  type        = string
  description = "host or address of the client that runs the gateway"
}

job "shoal-agents" {
  datacenters = ["*"]
  type        = "system"

  group "agent" {
    constraint {
      attribute = "${meta.shoal}"
      value     = "agent"
    }

    network {
      mode = "host"
      port "relay" {
        static = 7081
      }
    }

    service {
      name = "shoal-agent"
      port = "relay"
    }

    restart {
      attempts = 10
      interval = "10m"
      delay    = "2s"
      mode     = "delay"
    }

    task "agent" {
      driver       = "raw_exec"
      kill_timeout = "60s"

      config {
        command = "/usr/local/bin/shoal"
        args = [
          "agent", "--join", "${var.gateway}:7080", "--token-file", "/var/lib/shoal/token",
          "--name", "${node.unique.name}", "--listen", ":7081", "--models-gb", "16", "--json-log",
        ]
      }

      env {
        SHOAL_STATE = "/var/lib/shoal"
      }

      resources {
        cpu    = 2000
        memory = 2048
      }
    }
  }
}
