"""Shoal on Ray: Ray decides where things run, Shoal decides which model answers.

    spec.py        what is to run, from a YAML file
    process.py     a Shoal process that lives and ends with its actor
    actors.py      Worker and Gateway: one such process each
    scaling.py     how many workers a model is to have
    controller.py  makes the actors there are the ones that are wanted
    ingress.py     a Ray Serve deployment in front of the gateways
    __main__.py    the command shoal-ray
"""
NAMESPACE = "shoal"
CONTROLLER = "controller"
