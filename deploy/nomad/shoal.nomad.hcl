# Shoal on Nomad (1.5 or later): the gateway as a service job on one client, agents as a system job on the others
# (shoal-agents.nomad.hcl).
#
#   1  on each client, `make install` of Shoal (PREFIX /usr/local) and in its configuration a host volume and the
#      driver that needs no image:
#        client { host_volume "shoal" { path = "/var/lib/shoal" }  meta { shoal = "gateway" } }   # or "agent"
#        plugin "raw_exec" { config { enabled = true } }
#   2  on the gateway's client, once: shoal ca init --state /var/lib/shoal --cluster nomad
#   3  for each other client a token, good once:      shoal token create --state /var/lib/shoal --name CLIENT
#      and on that client, in a file that root alone reads: /var/lib/shoal/token
#   4  nomad job run deploy/nomad/shoal.nomad.hcl
#      nomad job run -var gateway=192.168.1.10 deploy/nomad/shoal-agents.nomad.hcl
#
# The agents attach to the gateway and say where they are: nothing is to be discovered. Consul has both as
# services, with the checks below.
job "shoal-gateway" {
  datacenters = ["*"]
  type        = "service"

  group "gateway" {
    count = 1

    constraint {
      attribute = "${meta.shoal}"
      value     = "gateway"
    }

    network {
      mode = "host"
      port "http" {
        static = 8080
      }
      port "cluster" {
        static = 7080
      }
    }

    service {
      name = "shoal"
      port = "http"

      check {
        type     = "http"
        path     = "/readyz"
        interval = "2s"
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
      driver       = "raw_exec"
      kill_timeout = "60s"

      config {
        command = "/usr/local/bin/shoal"
        args    = ["serve", "--config", "${NOMAD_TASK_DIR}/shoal.yaml", "--json-log"]
      }

      env {
        SHOAL_STATE = "/var/lib/shoal"
      }

      template {
        destination = "local/shoal.yaml"
        data        = <<-YAML
          listen: ":8080"
          cluster: {listen: ":7080", name: gateway}
          manifest: /usr/local/share/shoal/models/models.json
          models:
            - {name: home-intent}
            - {name: home-chat-s, replicas: 2, place: {spread: node}}
        YAML
      }

      resources {
        cpu    = 2000
        memory = 1024
      }
    }
  }
}
